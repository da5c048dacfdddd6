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
  bindingFor,
  ensureOwned,
  type Grant,
  grantName,
  grants,
  kubeconfigSecretFor,
  mayRead,
  roleFor,
  rulesOf,
  subjectOf,
} from './entry-objects.ts';

/** The fields of a registration that determine its grants. */
export type Grantee = Pick<Registration, 'name' | 'kubeconfig'>;

interface EntryAccountsDeps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/** Known access to an entry. Kept in memory only; after a restart everything is checked on first use. */
interface Known {
  readonly components: Map<string, KnownComponent>;
  /** An expected object is gone, so unknown objects are created without a prior check. */
  readonly lost: boolean;
  /** Account names by grant. Read when excess grants are first checked. */
  held: ReadonlyMap<Grant, Set<string>> | undefined;
  /** The Secret of a supplied kubeconfig that the component may read: undefined for none, null if not checked yet. */
  supplied: { readonly name: string; readonly seenAt: number } | undefined | null;
}

/** Instants are monotonic milliseconds. */
interface KnownComponent {
  readonly grants: readonly Grant[];
  readonly madeAt: number;
  /** Time at which the grants were last confirmed to be in force. */
  readonly seenAt: number | undefined;
}

/** Confirmed grants are checked again after this time, because another client may have removed them. */
const trustMs = 10 * 60_000;
/** Grants that a changed registration may no longer need. */
const onKubeconfig = ['kubeconfig', 'kubeconfig-producer'] as const satisfies readonly Grant[];
/** Maximum time until new grants are in force, milliseconds. */
const inForceMs = 5_000;
const pollMs = 15;

/**
 * Manages the ServiceAccounts, Roles, RoleBindings, and Secret of each entry: creates them on first use, repairs them, and deletes them
 * before the entry.
 */
export class EntryAccounts implements EntryAccess {
  readonly #deps: EntryAccountsDeps;
  readonly #applier: Applier;
  readonly #known = new Map<string, Known>();
  /** Serializes changes per entry, because its components share RoleBindings. */
  readonly #mutex = new KeyMutex();

  constructor(deps: EntryAccountsDeps) {
    this.#deps = deps;
    this.#applier = new Applier(deps.client);
  }

  async prepare({ ref }: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void> {
    await this.#mutex.run(ref.uid, () => this.#establish(ref, registrations, signal));
  }

  /** Resolves when the component's account exists and its grants are in force. Skips the check while a recent confirmation is valid. */
  async ensure(entry: Entry, component: Grantee, signal: AbortSignal): Promise<void> {
    const { ref, mode } = entry;
    if (!this.#isTrusted(ref.uid, component)) await this.#confirm(ref, component, signal);
    if (mode === 'byoc' && component.kubeconfig === 'produce') {
      await this.#mutex.run(ref.uid, () => this.#supply(entry, component.name, signal));
    }
  }

  /** Makes `ensure` check again after an object disappeared. Returns false if the access was withdrawn meanwhile. */
  forget(entryUid: string): boolean {
    if (!this.#known.has(entryUid)) return false;
    this.#known.set(entryUid, { components: new Map(), lost: true, held: undefined, supplied: null });
    return true;
  }

  async withdraw(ref: EntryRef, signal: AbortSignal): Promise<void> {
    const { uid, namespace } = ref;
    await this.#mutex.run(uid, async () => {
      this.#known.delete(uid);
      await Promise.all(grants.map((grant) => this.#delete(roleBindings, ref, grantName(uid, grant), signal)));
      await Promise.all(grants.map((grant) => this.#delete(roles, ref, grantName(uid, grant), signal)));
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
      for (const grant of grants) await this.#unbind(ref, grant, subject, signal);
      await this.#delete(serviceAccounts, ref, subject.name, signal);
    });
  }

  /** After a restart this checks before it creates: nearly everything still exists. */
  async #confirm(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<void> {
    const isNew = this.#isNew(ref.uid, component);
    const isLess = !isNew && (await this.#mutex.run(ref.uid, () => this.#revokeExcess(ref, component, signal)));
    if (isNew || isLess || !(await this.#stillExists(ref, component, signal))) {
      if (!isNew) await this.#mutex.run(ref.uid, () => this.#establish(ref, [component], signal));
      await this.#waitUntilInForce(ref, component, grantsOf(component), '', signal);
    }
    const now = this.#deps.clock.monotonic();
    // Skip this if the access was withdrawn meanwhile; the map entry would leak.
    const known = this.#known.get(ref.uid)?.components;
    known?.set(component.name, { grants: grantsOf(component), madeAt: now, seenAt: now });
  }

  #isNew(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    return (
      known !== undefined && hasExactly(known, component) && this.#deps.clock.monotonic() - known.madeAt < inForceMs
    );
  }

  async #stillExists(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#known.get(ref.uid);
    const ofComponent = known?.components.get(component.name);
    if (ofComponent ? !hasAll(ofComponent, component) : known?.lost) return false;
    // The producer needs the Secret besides its permissions.
    if (component.kubeconfig === 'produce') await this.#ensureSecret(ref, signal);
    return this.#areInForce(ref, component.name, grantsOf(component), '', signal);
  }

  #isTrusted(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    if (known?.seenAt === undefined || !hasExactly(known, component)) return false;
    return this.#deps.clock.monotonic() - known.seenAt < trustMs;
  }

  #of(uid: string): Known {
    const known = this.#known.get(uid) ?? { components: new Map(), lost: false, held: undefined, supplied: null };
    this.#known.set(uid, known);
    return known;
  }

  async #establish(ref: EntryRef, components: readonly Grantee[], signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    if (components.some(({ kubeconfig }) => kubeconfig !== 'none')) await this.#ensureSecret(ref, signal);
    const accounts = components.map(({ name }) => accountFor(ref, name));
    await Promise.all(accounts.map((account) => ensureOwned(client, serviceAccounts, account, ref.uid, signal)));
    for (const grant of grants) {
      const holders = components.filter((component) => grantsOf(component).includes(grant));
      const subjects = holders.map(({ name }) => subjectOf(ref, name));
      if (subjects.length > 0) await this.#bind(ref, grant, '', subjects, signal);
    }
    const { components: known, held } = this.#of(ref.uid);
    for (const component of components) {
      for (const grant of grantsOf(component)) held?.get(grant)?.add(subjectOf(ref, component.name).name);
      known.set(component.name, { grants: grantsOf(component), madeAt: clock.monotonic(), seenAt: undefined });
    }
  }

  /**
   * Revokes grants that the registration no longer needs. Returns whether there were any. Reads the RoleBindings once per entry after a
   * restart.
   */
  async #revokeExcess(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#of(ref.uid);
    known.held ??= new Map(
      await Promise.all(onKubeconfig.map(async (grant) => [grant, await this.#holders(ref, grant, signal)] as const)),
    );
    const subject = subjectOf(ref, component.name);
    let revoked = false;
    for (const grant of onKubeconfig) {
      const holders = known.held.get(grant);
      if (grantsOf(component).includes(grant) || !holders?.has(subject.name)) continue;
      await this.#unbind(ref, grant, subject, signal);
      holders.delete(subject.name);
      revoked = true;
    }
    return revoked;
  }

  async #holders(ref: EntryRef, grant: Grant, signal: AbortSignal): Promise<Set<string>> {
    const name = { namespace: ref.namespace, name: grantName(ref.uid, grant) };
    const found = await findObject(this.#deps.client, roleBindings, name, { signal });
    return new Set(accountsAmong(found?.['subjects'], ref).map((subject) => subject.name));
  }

  #ensureSecret(ref: EntryRef, signal: AbortSignal): Promise<void> {
    return ensureOwned(this.#deps.client, secrets, kubeconfigSecretFor(ref), ref.uid, signal);
  }

  async #bind(
    ref: EntryRef,
    grant: Grant,
    supplied: string,
    subjects: readonly RbacSubject[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#deps;
    await ensureOwned(client, roles, roleFor(ref, grant, supplied), ref.uid, signal, {
      name: 'rules',
      wanted: () => rulesOf(ref, grant, supplied),
    });
    await ensureOwned(client, roleBindings, bindingFor(ref, grant, subjects), ref.uid, signal, {
      name: 'subjects',
      wanted: (found) => {
        const present = accountsAmong(found, ref);
        return [...present, ...subjects.filter(({ name }) => !present.some((one) => one.name === name))];
      },
    });
  }

  async #unbind(ref: EntryRef, grant: Grant, subject: RbacSubject, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const name = { namespace: ref.namespace, name: grantName(ref.uid, grant) };
    try {
      const found = await client.get(roleBindings, name, { signal });
      const present = accountsAmong(found['subjects'], ref);
      const subjects = present.filter((one) => one.name !== subject.name);
      if (subjects.length === present.length) return;
      const { resourceVersion } = found.metadata;
      await client.mergePatch(roleBindings, name, { metadata: { resourceVersion }, subjects }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /**
   * Grants access to the supplied Secret on behalf of the user who named it: only while that user may read it, and only to this component.
   */
  async #supply(entry: Entry, component: string, signal: AbortSignal): Promise<void> {
    const { ref, kubeconfigSecretRef: named, kubeconfigSetBy: setter } = entry;
    const known = this.#of(ref.uid);
    if (named && setter && (await mayRead(this.#deps.client, setter, ref.namespace, named.name, signal))) {
      const now = this.#deps.clock.monotonic();
      if (known.supplied?.name === named.name && now - known.supplied.seenAt < trustMs) return;
      if (!(await this.#areInForce(ref, component, ['supplied'], named.name, signal))) {
        await this.#bind(ref, 'supplied', named.name, [subjectOf(ref, component)], signal);
        await this.#waitUntilInForce(ref, { name: component }, ['supplied'], named.name, signal);
      }
      known.supplied = { name: named.name, seenAt: now };
      return;
    }
    if (known.supplied === undefined) return;
    await this.#delete(roleBindings, ref, grantName(ref.uid, 'supplied'), signal);
    known.supplied = undefined;
    if (named) this.#reportUnreadable(ref, named.name, setter?.username);
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
    asked: readonly Grant[],
    supplied: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const start = clock.monotonic();
    while (!(await this.#areInForce(ref, name, asked, supplied, signal))) {
      if (clock.monotonic() - start > inForceMs) {
        const entry = `${ref.namespace}/${ref.name}`;
        const message = `the permissions of component ${name} on entry ${entry} are not in force ${inForceMs / 1000} s after their RoleBindings were written; check that RBAC authorization is enabled`;
        throw new CodedError('GrantNotInForce', message);
      }
      await sleep(clock, pollMs, signal);
    }
  }

  /** Checks the last permission of each grant: a Role is in force as a whole. */
  async #areInForce(
    ref: EntryRef,
    component: string,
    asked: readonly Grant[],
    supplied: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client } = this.#deps;
    const rights = asked.flatMap((grant) => rightsOf(rulesOf(ref, grant, supplied)).slice(-1));
    const answers = await Promise.all(
      rights.map((right) => client.isAllowed(accountQuestion(ref, component, right), { signal })),
    );
    return answers.every((allowed) => allowed);
  }

  async #delete(resource: Resource, ref: EntryRef, name: string, signal: AbortSignal): Promise<void> {
    await this.#applier.delete(resource, { namespace: ref.namespace, name }, { ownerUid: ref.uid }, signal);
  }
}

function grantsOf({ kubeconfig }: Pick<Grantee, 'kubeconfig'>): readonly Grant[] {
  if (kubeconfig === 'none') return ['entry'];
  return ['entry', kubeconfig === 'read' ? 'kubeconfig' : 'kubeconfig-producer'];
}

const hasAll = (known: KnownComponent | undefined, component: Grantee): boolean =>
  grantsOf(component).every((grant) => known?.grants.includes(grant));

const hasExactly = (known: KnownComponent, component: Grantee): boolean =>
  known.grants.join() === grantsOf(component).join();
