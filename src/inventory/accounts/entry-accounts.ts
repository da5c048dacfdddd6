import { clusterInventories, entryUidLabel, kubeconfigSecretName } from '../../api/inventory/names.ts';
import type { Resource } from '../../api/object.ts';
import { roleBindings, roles, secrets, serviceAccounts } from '../../api/resources.ts';
import { type Clock, sleep } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import { KeyMutex } from '../../kit/key-mutex.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { Applier } from '../../rbac/applier.ts';
import type { RbacSubject } from '../../rbac/roles.ts';
import { rightsOf } from '../../rbac/rule-cover.ts';
import type { Entry, EntryRef } from '../entry.ts';
import type { EntryAccess } from '../ports.ts';
import type { Registration } from '../registration.ts';
import {
  accountFor,
  accountQuestion,
  accountsAmong,
  type EntryRole,
  ensureOwned,
  entryRoleName,
  entryRoles,
  kubeconfigSecretFor,
  roleBindingFor,
  roleFor,
  rulesOf,
  setterMayReadSecret,
  subjectOf,
} from './entry-objects.ts';

/** The fields of a registration that determine the roles of its component. */
export type Grantee = Pick<Registration, 'name' | 'kubeconfig'>;

interface EntryAccountsDeps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/** The roles of an entry that this process knows. After a restart, it checks each on first use. */
interface KnownEntry {
  readonly components: Map<string, KnownComponent>;
  /** An object of the entry vanished, so recreate the objects without a prior check. */
  readonly hasLostObjects: boolean;
  /** Names of the accounts that have each role; undefined until the first check for excess roles. */
  holdersByRole: ReadonlyMap<EntryRole, Set<string>> | undefined;
  /** The supplied Secret that the component may read: undefined if there is none, null before the first check. */
  supplied: { readonly name: string; readonly confirmedAt: number } | undefined | null;
}

const unknownEntry = ({ hasLostObjects }: Pick<KnownEntry, 'hasLostObjects'>): KnownEntry => ({
  components: new Map(),
  hasLostObjects,
  holdersByRole: undefined,
  supplied: null,
});

/** The known roles of a component. Instants are monotonic milliseconds. */
interface KnownComponent {
  readonly roles: readonly EntryRole[];
  readonly createdAt: number;
  /** Time at which the roles were last confirmed to be in force. */
  readonly confirmedAt: number | undefined;
}

/** Time after which the server checks confirmed roles again on their next use, milliseconds: another client may have removed them. */
const trustMs = 10 * 60_000;
/** Roles that a component may lose when its registration changes. */
const kubeconfigRoles = ['kubeconfig', 'kubeconfig-producer'] as const satisfies readonly EntryRole[];
/** Maximum time until the API server applies new RoleBindings, milliseconds. */
const inForceMs = 5_000;
/** Interval between checks whether new RoleBindings are in force, milliseconds. */
const pollMs = 15;

/**
 * Manages the ServiceAccounts, Roles, RoleBindings, and Secret of each entry: creates them on first use, repairs them, and deletes them
 * before the entry.
 */
export class EntryAccounts implements EntryAccess {
  readonly #deps: EntryAccountsDeps;
  readonly #applier: Applier;
  readonly #known = new Map<string, KnownEntry>();
  /** Serializes changes per entry, because its components share RoleBindings. */
  readonly #mutex = new KeyMutex();

  constructor(deps: EntryAccountsDeps) {
    this.#deps = deps;
    this.#applier = new Applier(deps.client);
  }

  async prepare({ ref }: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void> {
    await this.#mutex.run(ref.uid, () => this.#establish(ref, registrations, signal));
  }

  /**
   * Resolves when the component's roles are in force; a confirmation is valid for ten minutes. Creates missing objects, but does not notice
   * a deleted account: after a NotFound, call `forget` and this again. For a kubeconfig producer in mode `byoc`, also grants or revokes
   * access to the supplied Secret. Rejects like the client, and with CodedError `NameTaken` or `GrantNotInForce`.
   */
  async ensure(entry: Entry, component: Grantee, signal: AbortSignal): Promise<void> {
    const { ref, mode } = entry;
    if (!this.#isTrusted(ref.uid, component)) await this.#confirm(ref, component, signal);
    if (mode === 'byoc' && component.kubeconfig === 'produce') {
      await this.#mutex.run(ref.uid, () => this.#supply(entry, component.name, signal));
    }
  }

  /** After an object vanished, makes the next `ensure` recreate what is missing. Returns false if the access is withdrawn or unknown. */
  forget(entryUid: string): boolean {
    if (!this.#known.has(entryUid)) return false;
    this.#known.set(entryUid, unknownEntry({ hasLostObjects: true }));
    return true;
  }

  async withdraw(ref: EntryRef, signal: AbortSignal): Promise<void> {
    const { uid, namespace } = ref;
    await this.#mutex.run(uid, async () => {
      this.#known.delete(uid);
      await Promise.all(entryRoles.map((role) => this.#delete(roleBindings, ref, entryRoleName(uid, role), signal)));
      await Promise.all(entryRoles.map((role) => this.#delete(roles, ref, entryRoleName(uid, role), signal)));
      const labelSelector = `${entryUidLabel}=${uid}`;
      const accounts = await this.#deps.client.list(serviceAccounts, { namespace, labelSelector, signal });
      for (const { metadata } of accounts.items) await this.#delete(serviceAccounts, ref, metadata.name, signal);
      await this.#delete(secrets, ref, kubeconfigSecretName(uid), signal);
    });
  }

  async withdrawFrom(ref: EntryRef, component: string, signal: AbortSignal): Promise<void> {
    const subject = subjectOf(ref, component);
    await this.#mutex.run(ref.uid, async () => {
      const known = this.#known.get(ref.uid);
      known?.components.delete(component);
      if (known?.supplied) known.supplied = null;
      for (const role of entryRoles) await this.#unbind(ref, role, subject, signal);
      await this.#delete(serviceAccounts, ref, subject.name, signal);
    });
  }

  /** Confirms the roles of a component. Checks before it creates, because after a restart nearly all objects exist. */
  async #confirm(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<void> {
    const isNew = this.#isNew(ref.uid, component);
    const revokedExcess = !isNew && (await this.#mutex.run(ref.uid, () => this.#revokeExcess(ref, component, signal)));
    if (isNew || revokedExcess || !(await this.#stillExists(ref, component, signal))) {
      if (!isNew) await this.#mutex.run(ref.uid, () => this.#establish(ref, [component], signal));
      await this.#waitUntilInForce(ref, component, rolesOf(component), '', signal);
    }
    const now = this.#deps.clock.monotonic();
    // After a withdrawal there is no map entry, and a new one would leak.
    const known = this.#known.get(ref.uid)?.components;
    known?.set(component.name, { roles: rolesOf(component), createdAt: now, confirmedAt: now });
  }

  /** Whether this process has just created the component's RoleBindings, which may not be in force yet. */
  #isNew(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    return (
      known !== undefined && hasExactly(known, component) && this.#deps.clock.monotonic() - known.createdAt < inForceMs
    );
  }

  async #stillExists(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#known.get(ref.uid);
    const ofComponent = known?.components.get(component.name);
    if (ofComponent ? !hasAll(ofComponent, component) : known?.hasLostObjects) return false;
    // The producer needs the Secret besides its permissions.
    if (component.kubeconfig === 'produce') await this.#ensureSecret(ref, signal);
    return this.#areInForce(ref, component.name, rolesOf(component), '', signal);
  }

  #isTrusted(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    if (known?.confirmedAt === undefined || !hasExactly(known, component)) return false;
    return this.#deps.clock.monotonic() - known.confirmedAt < trustMs;
  }

  #knownEntry(uid: string): KnownEntry {
    const known = this.#known.get(uid) ?? unknownEntry({ hasLostObjects: false });
    this.#known.set(uid, known);
    return known;
  }

  /** Creates the objects of components; corrects Roles and RoleBindings that differ. Drops foreign subjects. */
  async #establish(ref: EntryRef, components: readonly Grantee[], signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    if (components.some(({ kubeconfig }) => kubeconfig !== 'none')) await this.#ensureSecret(ref, signal);
    const accounts = components.map(({ name }) => accountFor(ref, name));
    await Promise.all(accounts.map((account) => ensureOwned(client, serviceAccounts, account, ref.uid, signal)));
    for (const role of entryRoles) {
      const holders = components.filter((component) => rolesOf(component).includes(role));
      const subjects = holders.map(({ name }) => subjectOf(ref, name));
      if (subjects.length > 0) await this.#bind(ref, role, '', subjects, signal);
    }
    const { components: known, holdersByRole } = this.#knownEntry(ref.uid);
    for (const component of components) {
      for (const role of rolesOf(component)) holdersByRole?.get(role)?.add(subjectOf(ref, component.name).name);
      known.set(component.name, { roles: rolesOf(component), createdAt: clock.monotonic(), confirmedAt: undefined });
    }
  }

  /** Revokes kubeconfig roles that the component no longer needs. Returns whether there were any. */
  async #revokeExcess(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#knownEntry(ref.uid);
    known.holdersByRole ??= new Map(
      await Promise.all(kubeconfigRoles.map(async (role) => [role, await this.#holders(ref, role, signal)] as const)),
    );
    const subject = subjectOf(ref, component.name);
    let revoked = false;
    for (const role of kubeconfigRoles) {
      const holders = known.holdersByRole.get(role);
      if (rolesOf(component).includes(role) || !holders?.has(subject.name)) continue;
      await this.#unbind(ref, role, subject, signal);
      holders.delete(subject.name);
      revoked = true;
    }
    return revoked;
  }

  /** Names of the accounts that have a role. */
  async #holders(ref: EntryRef, role: EntryRole, signal: AbortSignal): Promise<Set<string>> {
    const name = { namespace: ref.namespace, name: entryRoleName(ref.uid, role) };
    const found = await findObject(this.#deps.client, roleBindings, name, { signal });
    return new Set(accountsAmong(found?.['subjects'], ref).map((subject) => subject.name));
  }

  #ensureSecret(ref: EntryRef, signal: AbortSignal): Promise<void> {
    return ensureOwned(this.#deps.client, secrets, kubeconfigSecretFor(ref), ref.uid, signal);
  }

  /** Adds subjects to the RoleBinding of a role. `suppliedSecret`: as for `rulesOf`. */
  async #bind(
    ref: EntryRef,
    role: EntryRole,
    suppliedSecret: string,
    subjects: readonly RbacSubject[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#deps;
    await ensureOwned(client, roles, roleFor(ref, role, suppliedSecret), ref.uid, signal, {
      name: 'rules',
      desired: () => rulesOf(ref, role, suppliedSecret),
    });
    await ensureOwned(client, roleBindings, roleBindingFor(ref, role, subjects), ref.uid, signal, {
      name: 'subjects',
      desired: (current) => {
        const existing = accountsAmong(current, ref);
        return [...existing, ...subjects.filter(({ name }) => !existing.some((subject) => subject.name === name))];
      },
    });
  }

  /** Removes a subject from the RoleBinding of a role. */
  async #unbind(ref: EntryRef, role: EntryRole, subject: RbacSubject, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const name = { namespace: ref.namespace, name: entryRoleName(ref.uid, role) };
    try {
      const found = await client.get(roleBindings, name, { signal });
      const existing = accountsAmong(found['subjects'], ref);
      const subjects = existing.filter(({ name }) => name !== subject.name);
      if (subjects.length === existing.length) return;
      const { resourceVersion } = found.metadata;
      await client.mergePatch(roleBindings, name, { metadata: { resourceVersion }, subjects }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Grants the component access to the supplied Secret while the user who set the reference may read it. Otherwise revokes that access. */
  async #supply(entry: Entry, component: string, signal: AbortSignal): Promise<void> {
    const { ref, kubeconfigSecretRef: secretRef, kubeconfigSetBy: setter } = entry;
    const known = this.#knownEntry(ref.uid);
    if (
      secretRef &&
      setter &&
      (await setterMayReadSecret(this.#deps.client, setter, ref.namespace, secretRef.name, signal))
    ) {
      const now = this.#deps.clock.monotonic();
      if (known.supplied?.name === secretRef.name && now - known.supplied.confirmedAt < trustMs) return;
      if (!(await this.#areInForce(ref, component, ['supplied'], secretRef.name, signal))) {
        await this.#bind(ref, 'supplied', secretRef.name, [subjectOf(ref, component)], signal);
        await this.#waitUntilInForce(ref, { name: component }, ['supplied'], secretRef.name, signal);
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
        ? `kubeconfigSecretRef ${secret} has no verified user, because the webhook was unavailable when it was set; remove spec.kubeconfigSecretRef and set it again`
        : `user ${setter} set kubeconfigSecretRef ${secret} but may not read that Secret; a user who may read it must set spec.kubeconfigSecretRef again`;
    this.#deps.events.record({
      regarding: regarding(clusterInventories, ref),
      type: 'Warning',
      reason: 'SecretNotReadable',
      action: 'Grant',
      note,
    });
  }

  async #waitUntilInForce(
    ref: EntryRef,
    { name }: Pick<Grantee, 'name'>,
    wanted: readonly EntryRole[],
    suppliedSecret: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const start = clock.monotonic();
    while (!(await this.#areInForce(ref, name, wanted, suppliedSecret, signal))) {
      if (clock.monotonic() - start > inForceMs) {
        const entry = `${ref.namespace}/${ref.name}`;
        const message = `the permissions of component ${name} on entry ${entry} are not in force ${inForceMs / 1000} s after their RoleBindings were written; check that RBAC authorization is enabled`;
        throw new CodedError('GrantNotInForce', message);
      }
      await sleep(clock, pollMs, signal);
    }
  }

  /** Whether the API server grants the last permission of each role. A Role takes effect as a whole, so one permission is enough. */
  async #areInForce(
    ref: EntryRef,
    component: string,
    wanted: readonly EntryRole[],
    suppliedSecret: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client } = this.#deps;
    const rights = wanted.flatMap((role) => rightsOf(rulesOf(ref, role, suppliedSecret)).slice(-1));
    const answers = await Promise.all(
      rights.map((right) => client.isAllowed(accountQuestion(ref, component, right), { signal })),
    );
    return answers.every((allowed) => allowed);
  }

  async #delete(resource: Resource, ref: EntryRef, name: string, signal: AbortSignal): Promise<void> {
    await this.#applier.delete(resource, { namespace: ref.namespace, name }, { ownerUid: ref.uid }, signal);
  }
}

/** The roles that a component needs. */
function rolesOf({ kubeconfig }: Pick<Grantee, 'kubeconfig'>): readonly EntryRole[] {
  if (kubeconfig === 'none') return ['entry'];
  return ['entry', kubeconfig === 'read' ? 'kubeconfig' : 'kubeconfig-producer'];
}

const hasAll = (known: KnownComponent | undefined, component: Grantee): boolean =>
  rolesOf(component).every((role) => known?.roles.includes(role));

const hasExactly = (known: KnownComponent, component: Grantee): boolean =>
  known.roles.join() === rolesOf(component).join();
