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

/** What decides on the grants of a component. */
export type Grantee = Pick<Registration, 'name' | 'kubeconfig'>;

interface EntryAccountsDeps {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/** What is known of an entry's access. In memory alone: after a start everything is looked at when it is first needed. */
interface Known {
  readonly components: Map<string, KnownComponent>;
  /** Something that was there has gone: what is not known is made, and not asked about first. */
  readonly lost: boolean;
  /** By grant: names of the accounts that have it. Read when it first matters what they have too much. */
  held: ReadonlyMap<Grant, Set<string>> | undefined;
  /** The Secret of a supplied kubeconfig that its component may read: undefined for none, null while it was not looked at. */
  supplied: { readonly name: string; readonly seenAt: number } | undefined | null;
}

/** Instants are monotonic milliseconds. */
interface KnownComponent {
  readonly grants: readonly Grant[];
  readonly madeAt: number;
  /** When the grants were last seen to be in force. */
  readonly seenAt: number | undefined;
}

/** Grants that were in force so long ago are asked about again: somebody may have taken them away. */
const trustMs = 10 * 60_000;
/** Those that a registration can give up. */
const onKubeconfig = ['kubeconfig', 'kubeconfig-producer'] as const satisfies readonly Grant[];
/** How long new grants may take to be in force. */
const inForceMs = 5_000;
const askAgainMs = 15;

/** Accounts, Roles, RoleBindings and the Secret of each entry: made on first need, repaired, and taken away before the entry goes. */
export class EntryAccounts implements EntryAccess {
  readonly #deps: EntryAccountsDeps;
  readonly #applier: Applier;
  readonly #known = new Map<string, Known>();
  /** Of each entry: one at a time, because its components share RoleBindings. */
  readonly #turns = new KeyMutex();

  constructor(deps: EntryAccountsDeps) {
    this.#deps = deps;
    this.#applier = new Applier(deps.client);
  }

  async prepare({ ref }: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void> {
    await this.#turns.run(ref.uid, () => this.#establish(ref, registrations, signal));
  }

  /** Resolves when the account of the component is there and its grants are in force. Nothing is asked as long as that is known. */
  async ensure(entry: Entry, component: Grantee, signal: AbortSignal): Promise<void> {
    const { ref, mode } = entry;
    if (!this.#isTrusted(ref.uid, component)) await this.#see(ref, component, signal);
    if (mode === 'byoc' && component.kubeconfig === 'produce') {
      await this.#turns.run(ref.uid, () => this.#supply(entry, component.name, signal));
    }
  }

  /** Makes `ensure` look again: something that was there has gone. False when all of it was withdrawn meanwhile. */
  forget(entryUid: string): boolean {
    if (!this.#known.has(entryUid)) return false;
    this.#known.set(entryUid, { components: new Map(), lost: true, held: undefined, supplied: null });
    return true;
  }

  async withdraw(ref: EntryRef, signal: AbortSignal): Promise<void> {
    const { uid, namespace } = ref;
    await this.#turns.run(uid, async () => {
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
    await this.#turns.run(ref.uid, async () => {
      const known = this.#known.get(ref.uid);
      known?.components.delete(component);
      if (known?.supplied) known.supplied = null;
      for (const grant of grants) await this.#unbind(ref, grant, subject, signal);
      await this.#delete(serviceAccounts, ref, subject.name, signal);
    });
  }

  /** After a start it asks first: of what was there before, nearly all is still there. */
  async #see(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<void> {
    const isNew = this.#isNew(ref.uid, component);
    const isLess = !isNew && (await this.#turns.run(ref.uid, () => this.#takeBack(ref, component, signal)));
    if (isNew || isLess || !(await this.#isStillThere(ref, component, signal))) {
      if (!isNew) await this.#turns.run(ref.uid, () => this.#establish(ref, [component], signal));
      await this.#untilInForce(ref, component, grantsOf(component), '', signal);
    }
    const now = this.#deps.clock.monotonic();
    // Unless it was withdrawn meanwhile: nobody would take it out again.
    const known = this.#known.get(ref.uid)?.components;
    known?.set(component.name, { grants: grantsOf(component), madeAt: now, seenAt: now });
  }

  #isNew(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    return (
      known !== undefined && holdsJust(known, component) && this.#deps.clock.monotonic() - known.madeAt < inForceMs
    );
  }

  async #isStillThere(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#known.get(ref.uid);
    const ofComponent = known?.components.get(component.name);
    if (ofComponent ? !holdsAll(ofComponent, component) : known?.lost) return false;
    // Without the Secret its producer could not go on, however many rights it has.
    if (component.kubeconfig === 'produce') await this.#ensureSecret(ref, signal);
    return this.#haveAll(ref, component.name, grantsOf(component), '', signal);
  }

  #isTrusted(uid: string, component: Grantee): boolean {
    const known = this.#known.get(uid)?.components.get(component.name);
    if (known?.seenAt === undefined || !holdsJust(known, component)) return false;
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

  /** What its registration does not ask for any more; whether there was any. After a start that is read once an entry. */
  async #takeBack(ref: EntryRef, component: Grantee, signal: AbortSignal): Promise<boolean> {
    const known = this.#of(ref.uid);
    known.held ??= new Map(
      await Promise.all(onKubeconfig.map(async (grant) => [grant, await this.#holders(ref, grant, signal)] as const)),
    );
    const subject = subjectOf(ref, component.name);
    let taken = false;
    for (const grant of onKubeconfig) {
      const holders = known.held.get(grant);
      if (grantsOf(component).includes(grant) || !holders?.has(subject.name)) continue;
      await this.#unbind(ref, grant, subject, signal);
      holders.delete(subject.name);
      taken = true;
    }
    return taken;
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
        const there = accountsAmong(found, ref);
        return [...there, ...subjects.filter(({ name }) => !there.some((one) => one.name === name))];
      },
    });
  }

  async #unbind(ref: EntryRef, grant: Grant, subject: RbacSubject, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const name = { namespace: ref.namespace, name: grantName(ref.uid, grant) };
    try {
      const found = await client.get(roleBindings, name, { signal });
      const there = accountsAmong(found['subjects'], ref);
      const subjects = there.filter((one) => one.name !== subject.name);
      if (subjects.length === there.length) return;
      const { resourceVersion } = found.metadata;
      await client.mergePatch(roleBindings, name, { metadata: { resourceVersion }, subjects }, { signal });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** The Secret that a user named is read on behalf of that user: as long as they may read it, by nobody but the component for it. */
  async #supply(entry: Entry, component: string, signal: AbortSignal): Promise<void> {
    const { ref, kubeconfigSecretRef: named, kubeconfigSetBy: setter } = entry;
    const known = this.#of(ref.uid);
    if (named && setter && (await mayRead(this.#deps.client, setter, ref.namespace, named.name, signal))) {
      const now = this.#deps.clock.monotonic();
      if (known.supplied?.name === named.name && now - known.supplied.seenAt < trustMs) return;
      if (!(await this.#haveAll(ref, component, ['supplied'], named.name, signal))) {
        await this.#bind(ref, 'supplied', named.name, [subjectOf(ref, component)], signal);
        await this.#untilInForce(ref, { name: component }, ['supplied'], named.name, signal);
      }
      known.supplied = { name: named.name, seenAt: now };
      return;
    }
    if (known.supplied === undefined) return;
    await this.#delete(roleBindings, ref, grantName(ref.uid, 'supplied'), signal);
    known.supplied = undefined;
    if (named) this.#tellUnreadable(ref, named.name, setter?.username);
  }

  #tellUnreadable(ref: EntryRef, secret: string, setter: string | undefined): void {
    const note =
      setter === undefined
        ? `nobody vouches for Secret ${secret}: the webhook was not there when it was named; take it out of the entry and name it again`
        : `${setter} named Secret ${secret} and may not read it, so nobody reads it for them; somebody who may has to name it`;
    this.#deps.events.record({
      regarding: regarding(clusterInventories, ref),
      type: 'Warning',
      reason: 'SecretNotReadable',
      action: 'Grant',
      note,
    });
  }

  async #untilInForce(
    ref: EntryRef,
    { name }: Pick<Grantee, 'name'>,
    asked: readonly Grant[],
    supplied: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps;
    const start = clock.monotonic();
    while (!(await this.#haveAll(ref, name, asked, supplied, signal))) {
      if (clock.monotonic() - start > inForceMs) {
        const entry = `${ref.namespace}/${ref.name}`;
        const message = `the API server does not let component ${name} at entry ${entry}, ${inForceMs / 1000} s after it was told to`;
        throw new CodedError('GrantNotInForce', message);
      }
      await sleep(clock, askAgainMs, signal);
    }
  }

  /** By the last right of each grant: the API server has all of a Role or nothing. */
  async #haveAll(
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

const holdsAll = (known: KnownComponent | undefined, component: Grantee): boolean =>
  grantsOf(component).every((grant) => known?.grants.includes(grant));

const holdsJust = (known: KnownComponent, component: Grantee): boolean =>
  known.grants.join() === grantsOf(component).join();
