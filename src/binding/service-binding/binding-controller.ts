import { keyOf } from '../../api/object.ts';
import { Controller } from '../../engine/controller.ts';
import { done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { Source } from '../../engine/source.ts';
import { fromEach, fromSubscription } from '../../engine/sources/from-subscription.ts';
import type { BindingDeps } from '../deps.ts';
import { lookupOf, type ProviderSession, type Sessions, servingSession } from '../sessions/provider-session.ts';
import { type BindingView, bySecret } from '../stores/consumer-stores.ts';
import { bySchema } from '../stores/provider-stores.ts';
import { Binder } from './binder.ts';
import { abandonedCrds, type BindingReconcilerDeps, crdsNotOwnedBy } from './binding-lookups.ts';
import { BindingWriter } from './binding-writer.ts';
import { CrdWriter } from './crd-writer.ts';
import { owningBindings } from './owner.ts';
import { Releaser } from './releaser.ts';
import type { RunningSyncers } from './running-syncers.ts';
import { Unbinder } from './unbinder.ts';

export interface BindingOptions {
  readonly syncers: RunningSyncers;
  readonly bindable?: readonly string[] | undefined;
}

export function bindingController(
  sessions: Sessions,
  deps: BindingDeps,
  { syncers, bindable }: BindingOptions,
): Controller {
  const { clock, log, metrics, stores } = deps;
  const name = 'binding';
  const reconcilerDeps: BindingReconcilerDeps = {
    ...deps,
    sessions,
    syncers,
    bindable,
    writer: new BindingWriter(deps),
    crdWriter: new CrdWriter({ ...deps, crds: stores.crds }),
    releaser: new Releaser(deps),
  };
  return new Controller({
    name,
    clock,
    log,
    metrics: metrics.controller(name),
    sources: bindingSources(reconcilerDeps),
    reconciler: new BindingReconciler(reconcilerDeps),
  });
}

/** The key is the name of an APIServiceBinding. */
export class BindingReconciler implements Reconciler {
  readonly #deps: BindingReconcilerDeps;
  readonly #binder: Binder;
  readonly #unbinder: Unbinder;

  constructor(deps: BindingReconcilerDeps) {
    this.#deps = deps;
    this.#binder = new Binder(deps);
    this.#unbinder = new Unbinder(deps);
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const binding = this.#deps.stores.bindings.get(name);
    const result = binding ? await this.#bindOrUnbind(binding, signal) : done;
    // Last: the server may lack permission on objects of an earlier binding of this name.
    await this.#releaseAbandoned(name, binding, signal);
    return result;
  }

  async #bindOrUnbind(binding: BindingView, signal: AbortSignal): Promise<Result> {
    const { sessions } = this.#deps;
    const lookup = lookupOf(sessions, binding);
    if (lookup.kind === 'pending') return notReady(`Secret ${keyOf(binding.secretRef)}`);
    const provider = { lookup, session: servingSession(lookup) };
    return binding.deleting
      ? this.#unbinder.unbind(binding, provider, signal)
      : this.#binder.bind(binding, provider, signal);
  }

  /** Objects of an earlier binding of this name, deleted without the unbind finalizer. */
  async #releaseAbandoned(name: string, binding: BindingView | undefined, signal: AbortSignal): Promise<void> {
    const { client, releaser, stores, syncers } = this.#deps;
    const crds = abandonedCrds(stores.crds, name, binding).filter((crd) => !syncers.isSyncing(name, crd.name));
    await releaser.release(await crdsNotOwnedBy(client, name, releaser.unreleased(crds), signal), signal);
  }
}

interface Named {
  readonly name: string;
}

function bindingSources(deps: BindingReconcilerDeps): Source[] {
  const { sessions, syncers, stores, crdWriter, releaser } = deps;
  const bindingsOf = (secret: string): string[] => stores.bindings.byIndex(bySecret, secret).map(({ key }) => key);
  return [
    fromSubscription('binding', stores.bindings, ({ key }) => [key]),
    fromSubscription('crd', stores.crds, (event) => {
      if (event.type === 'deleted') {
        crdWriter.forget(event.key);
        releaser.forget([event.before]);
      }
      const owners = 'now' in event ? event.now.ownerReferences : event.before.ownerReferences;
      const exporting = [...sessions.list()].flatMap((session) => exportsOf(session, event.key));
      return [...owningBindings(owners), ...exporting];
    }),
    fromSubscription('session', sessions, bindingsOf),
    fromEach('export', sessions, ({ stores }, emit) =>
      stores.exports.subscribe((event) => emit(nameIn(event), 'export')),
    ),
    fromEach('request', sessions, ({ stores }, emit) =>
      stores.exportRequests.subscribe((event) => emit(nameIn(event), 'request')),
    ),
    fromEach('schema', sessions, (session, emit) =>
      session.stores.schemas.subscribe((event) => {
        for (const name of exportsOf(session, nameIn(event))) emit(name, 'schema');
      }),
    ),
    fromEach('provider', sessions, (session, emit) =>
      session.stores.clusterBindings.subscribe((event) => {
        // A heartbeat does not affect bindings.
        if (event.type === 'updated' && event.before.providerPrettyName === event.now.providerPrettyName) return;
        for (const secret of sessions.secretsOf(session)) for (const name of bindingsOf(secret)) emit(name, 'provider');
      }),
    ),
    fromSubscription('syncers', syncers, (binding) => [binding]),
  ];
}

const nameIn = ({ now, before }: { readonly now?: Named; readonly before?: Named }): string =>
  (now ?? before)?.name ?? '';

/** By BoundSchema or CRD. Each binding has the name of its export. */
function exportsOf({ stores }: ProviderSession, schemaName: string): string[] {
  return stores.exports.byIndex(bySchema, schemaName).map(({ name }) => name);
}
