import { clusterInventories, entryUidLabel, kubeconfigSecretName } from '../../api/inventory/names.ts';
import type { Resource } from '../../api/object.ts';
import { roleBindings, roles, secrets, serviceAccounts } from '../../api/resources.ts';
import type { Clock } from '../../kit/clock.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import type { Client } from '../../kube/client.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { Applier } from '../../rbac/applier.ts';
import type { Entry, EntryRef } from '../entry.ts';
import type { EntryAccess } from '../ports.ts';
import type { Registration } from '../registration.ts';
import {
  accountFor,
  type EntryRole,
  ensureOwned,
  entryRoleName,
  entryRoles,
  kubeconfigSecretFor,
  setterMayReadSecret,
  subjectOf,
} from './entry-objects.ts';
import { EntryRoleBindings, inForceMs } from './entry-role-bindings.ts';

/** The fields that determine the roles of a component. */
export type Grantee = Pick<Registration, 'name' | 'kubeconfig'>;

interface EntryAccountsDeps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/** After a restart, each role is checked on first use. */
interface KnownEntry {
  readonly components: Map<string, KnownComponent>;
  /** Another client deleted an object of the entry: recreate without a prior check. */
  readonly hasLostObjects: boolean;
  /** Accounts with each kubeconfig role; undefined before the first check for roles to revoke. */
  holdersByRole: ReadonlyMap<EntryRole, Set<string>> | undefined;
  /** The user's Secret that the producer may read; null: not checked. `confirmedAt`: monotonic. */
  supplied: { readonly name: string; readonly confirmedAt: number } | undefined | null;
}

const unknownEntry = ({ hasLostObjects }: Pick<KnownEntry, 'hasLostObjects'>): KnownEntry => ({
  components: new Map(),
  hasLostObjects,
  holdersByRole: undefined,
  supplied: null,
});

/** Instants are monotonic milliseconds. */
interface KnownComponent {
  readonly roles: readonly EntryRole[];
  /** When this process created or last confirmed the roles. */
  readonly createdAt: number;
  /** When they were last confirmed to be in force. */
  readonly confirmedAt: number | undefined;
}

/** Confirmed roles are checked again after this time: another client may have removed them. */
const trustMs = 10 * 60_000;
/** Roles that a component may lose if its registration changes. */
const kubeconfigRoles = ['kubeconfig', 'kubeconfig-producer'] as const satisfies readonly EntryRole[];

/** Creates the access objects of each entry on first use, repairs them, and deletes them. */
export class EntryAccounts implements EntryAccess {
  readonly #deps: EntryAccountsDeps;
  readonly #applier: Applier;
  readonly #bindings: EntryRoleBindings;
  /** By entry UID; without entries whose access was withdrawn. */
  readonly #knownEntries = new Map<string, KnownEntry>();
  /** Per entry, because its components share RoleBindings. */
  readonly #mutex = new KeyMutex();

  constructor(deps: EntryAccountsDeps) {
    this.#deps = deps;
    this.#applier = new Applier(deps.client);
    this.#bindings = new EntryRoleBindings(deps.client, deps.clock);
  }

  async prepare({ ref }: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void> {
    await this.#mutex.run(ref.uid, () => this.#createAccess(ref, registrations, signal));
  }

  /**
   * Resolves when the component's roles are in force. After a NotFound, call `forget`, then this
   * again. Rejects as the client does, and with `NameTaken` or `GrantNotInForce`.
   */
  async ensure(entry: Entry, component: Grantee, signal: AbortSignal): Promise<void> {
    const { ref, mode } = entry;
    if (!this.#isTrusted(ref.uid, component)) await this.#confirm(ref, component, signal);
    if (mode === 'byoc' && component.kubeconfig === 'produce') {
      await this.#mutex.run(ref.uid, () => this.#syncSuppliedAccess(entry, component.name, signal));
    }
  }

  /** After another client deleted an object: the next `ensure` recreates it. False if not known. */
  forget(entryUid: string): boolean {
    if (!this.#knownEntries.has(entryUid)) return false;
    this.#knownEntries.set(entryUid, unknownEntry({ hasLostObjects: true }));
    return true;
  }

  async withdraw(ref: EntryRef, signal: AbortSignal): Promise<void> {
    const { uid, namespace } = ref;
    await this.#mutex.run(uid, async () => {
      this.#knownEntries.delete(uid);
      await Promise.all(entryRoles.map((role) => this.#delete(roleBindings, ref, entryRoleName(uid, role), signal)));
      await Promise.all(entryRoles.map((role) => this.#delete(roles, ref, entryRoleName(uid, role), signal)));
      const labelSelector = `${entryUidLabel}=${uid}`;
      const accounts = await this.#deps.client.list(serviceAccounts, { namespace, labelSelector, signal });
      for (const { metadata } of accounts.items) await this.#delete(serviceAccounts, ref, metadata.name, signal);
      await this.#delete(secrets, ref, kubeconfigSecretName(uid), signal);
    });
  }

  async deleteAccount(ref: EntryRef, component: string, signal: AbortSignal): Promise<void> {
    const subject = subjectOf(ref, component);
    await this.#mutex.run(ref.uid, async () => {
      const known = this.#knownEntries.get(ref.uid);
      known?.components.delete(component);
      if (known?.supplied) known.supplied = null;
      for (const role of entryRoles) await this.#bindings.unbind(ref, role, subject, signal);
      await this.#delete(serviceAccounts, ref, subject.name, signal);
    });
  }

  /** Checks before it creates, because after a restart nearly all objects exist. */
  async #confirm(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<void> {
    const isNew = this.#isNew(ref.uid, component);
    const revokedExcess = !isNew && (await this.#mutex.run(ref.uid, () => this.#revokeExcess(ref, component, signal)));
    if (isNew || revokedExcess || !(await this.#stillExists(ref, component, signal))) {
      if (!isNew) await this.#mutex.run(ref.uid, () => this.#createAccess(ref, [component], signal));
      await this.#bindings.waitUntilInForce(ref, component.name, rolesOf(component), '', signal);
    }
    const now = this.#deps.clock.monotonic();
    // After a withdrawal there is no map entry, and a new one would leak.
    this.#knownEntries
      .get(ref.uid)
      ?.components.set(component.name, { roles: rolesOf(component), createdAt: now, confirmedAt: now });
  }

  /** This process wrote the RoleBindings so recently that they may not be in force yet. */
  #isNew(uid: string, component: Grantee): boolean {
    const known = this.#knownEntries.get(uid)?.components.get(component.name);
    if (!known || !hasExactRoles(known, component)) return false;
    return this.#deps.clock.monotonic() - known.createdAt < inForceMs;
  }

  /** Whether the roles are in force. Creates a missing Secret of a kubeconfig producer. */
  async #stillExists(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#knownEntries.get(ref.uid);
    const ofComponent = known?.components.get(component.name);
    const mayExist = ofComponent ? hasAllRoles(ofComponent, component) : !known?.hasLostObjects;
    if (!mayExist) return false;
    // A producer needs the Secret, because it may not create it.
    if (component.kubeconfig === 'produce') await this.#ensureSecret(ref, signal);
    return this.#bindings.areInForce(ref, component.name, rolesOf(component), '', signal);
  }

  #isTrusted(uid: string, component: Grantee): boolean {
    const known = this.#knownEntries.get(uid)?.components.get(component.name);
    if (known?.confirmedAt === undefined || !hasExactRoles(known, component)) return false;
    return this.#deps.clock.monotonic() - known.confirmedAt < trustMs;
  }

  #knownEntry(uid: string): KnownEntry {
    const known = this.#knownEntries.get(uid) ?? unknownEntry({ hasLostObjects: false });
    this.#knownEntries.set(uid, known);
    return known;
  }

  /** Creates or corrects the objects. Removes subjects that are not accounts of the entry. */
  async #createAccess(ref: EntryRef, components: readonly Grantee[], signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    if (components.some(({ kubeconfig }) => kubeconfig !== 'none')) await this.#ensureSecret(ref, signal);
    const accounts = components.map(({ name }) => accountFor(ref, name));
    await Promise.all(accounts.map((account) => ensureOwned(client, serviceAccounts, account, ref.uid, signal)));
    for (const role of entryRoles) {
      const holders = components.filter((component) => rolesOf(component).includes(role));
      const subjects = holders.map(({ name }) => subjectOf(ref, name));
      if (subjects.length > 0) await this.#bindings.bind(ref, role, '', subjects, signal);
    }
    const { components: known, holdersByRole } = this.#knownEntry(ref.uid);
    for (const component of components) {
      for (const role of rolesOf(component)) holdersByRole?.get(role)?.add(subjectOf(ref, component.name).name);
      known.set(component.name, { roles: rolesOf(component), createdAt: clock.monotonic(), confirmedAt: undefined });
    }
  }

  /** Revokes kubeconfig roles that the component no longer needs; returns whether it had any. */
  async #revokeExcess(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#knownEntry(ref.uid);
    known.holdersByRole ??= new Map(
      await Promise.all(
        kubeconfigRoles.map(async (role) => [role, await this.#bindings.holders(ref, role, signal)] as const),
      ),
    );
    const subject = subjectOf(ref, component.name);
    let revoked = false;
    for (const role of kubeconfigRoles) {
      const holders = known.holdersByRole.get(role);
      if (rolesOf(component).includes(role) || !holders?.has(subject.name)) continue;
      await this.#bindings.unbind(ref, role, subject, signal);
      holders.delete(subject.name);
      revoked = true;
    }
    return revoked;
  }

  #ensureSecret(ref: EntryRef, signal: AbortSignal): Promise<void> {
    return ensureOwned(this.#deps.client, secrets, kubeconfigSecretFor(ref), ref.uid, signal);
  }

  /** Access to the supplied Secret lasts while the user who set the reference may read it. */
  async #syncSuppliedAccess(entry: Entry, component: string, signal: AbortSignal): Promise<void> {
    const { ref, kubeconfigSecretRef: secretRef, kubeconfigSetBy: setter } = entry;
    const known = this.#knownEntry(ref.uid);
    const mayRead =
      secretRef !== undefined &&
      setter !== undefined &&
      (await setterMayReadSecret(this.#deps.client, setter, ref.namespace, secretRef.name, signal));
    if (mayRead) {
      const now = this.#deps.clock.monotonic();
      if (known.supplied?.name === secretRef.name && now - known.supplied.confirmedAt < trustMs) return;
      if (!(await this.#bindings.areInForce(ref, component, ['supplied'], secretRef.name, signal))) {
        await this.#bindings.bind(ref, 'supplied', secretRef.name, [subjectOf(ref, component)], signal);
        await this.#bindings.waitUntilInForce(ref, component, ['supplied'], secretRef.name, signal);
      }
      known.supplied = { name: secretRef.name, confirmedAt: now };
      return;
    }
    if (known.supplied === undefined) return;
    await this.#delete(roleBindings, ref, entryRoleName(ref.uid, 'supplied'), signal);
    known.supplied = undefined;
    if (secretRef) this.#reportUnreadable(ref, secretRef.name, setter?.username);
  }

  #reportUnreadable(ref: EntryRef, secret: string, setter: string | undefined): void {
    const note =
      setter === undefined
        ? `kubeconfigSecretRef ${secret} has no verified user; remove spec.kubeconfigSecretRef, then set it again`
        : `user ${setter} set kubeconfigSecretRef ${secret} but may not read that Secret; ask a user who may read it to remove spec.kubeconfigSecretRef, and then to set it again`;
    this.#deps.events.record({
      regarding: regarding(clusterInventories, ref),
      type: 'Warning',
      reason: 'SecretNotReadable',
      action: 'Grant',
      note,
    });
  }

  async #delete(resource: Resource, ref: EntryRef, name: string, signal: AbortSignal): Promise<void> {
    await this.#applier.delete(resource, { namespace: ref.namespace, name }, { ownerUid: ref.uid }, signal);
  }
}

function rolesOf({ kubeconfig }: Pick<Grantee, 'kubeconfig'>): readonly EntryRole[] {
  if (kubeconfig === 'none') return ['entry'];
  return ['entry', kubeconfig === 'read' ? 'kubeconfig' : 'kubeconfig-producer'];
}

const hasAllRoles = (known: KnownComponent | undefined, component: Grantee): boolean =>
  rolesOf(component).every((role) => known?.roles.includes(role));

const hasExactRoles = (known: KnownComponent, component: Grantee): boolean =>
  known.roles.join() === rolesOf(component).join();
