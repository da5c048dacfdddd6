import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { after, done, type Result, retry } from '../../engine/result.ts';
import { describe } from '../../kit/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BindingView, CrdView } from '../stores/consumer-stores.ts';
import { bindingConditions } from './binding-conditions.ts';
import {
  type BindingReconcilerDeps,
  type BoundSession,
  bindingFacts,
  exportOf,
  isExportAbsent,
  ownedCrds,
} from './binding-lookups.ts';
import { plannedSyncers } from './sync-plan.ts';
import { type BoundCrdState, planUnbind, type UnbindFacts, type UnbindStep } from './unbind-plan.ts';

/** Events enqueue the binding earlier. */
const pollMs = 5000;

export class Unbinder {
  readonly #deps: BindingReconcilerDeps;

  constructor(deps: BindingReconcilerDeps) {
    this.#deps = deps;
  }

  /** A failed call sets Connected to False and is retried. */
  async unbind(binding: BindingView, provider: BoundSession, signal: AbortSignal): Promise<Result> {
    const { stores, writer } = this.#deps;
    const crds = ownedCrds(stores.crds, binding);
    let step: UnbindStep;
    let cause: unknown;
    try {
      step = await this.#plan(binding, crds, provider, signal);
      if (step.kind === 'finish') {
        await writer.removeFinalizer(binding, signal);
        return done;
      }
      if (step.kind === 'delete') await this.#delete(binding, crds, step.release, signal);
    } catch (error) {
      signal.throwIfAborted();
      cause = error;
      step = { kind: 'wait', blocked: true, message: `unbinding failed: ${describe(error)}; the server retries` };
    }
    const facts = bindingFacts(this.#deps, binding, provider, { unbindProgress: step });
    await writer.writeStatus(binding, bindingConditions(facts), {}, signal);
    return cause === undefined ? after(pollMs) : retry(cause);
  }

  async #plan(
    binding: BindingView,
    crds: readonly CrdView[],
    { session }: BoundSession,
    signal: AbortSignal,
  ): Promise<UnbindStep> {
    const { syncers } = this.#deps;
    const syncedSession = session?.state.kind === 'synced' ? session : undefined;
    const exportAbsent = syncedSession !== undefined && (await isExportAbsent(syncedSession, binding.name, signal));
    return planUnbind({
      binding,
      crds: crds.map((crd) => ({
        name: crd.name,
        exportState: syncedSession ? exportStateOf(crd, syncedSession, binding, exportAbsent) : 'exported',
        syncing: syncers.isSyncing(binding.name, crd.name),
      })),
      provider: providerStateOf(session),
      remaining: syncers.remainingOf(binding.name),
      drainSyncersRunning: !syncedSession || this.#drainSyncersRun(binding, syncedSession),
    });
  }

  /** Each exported resource that needs a drain has one. True without an export. */
  #drainSyncersRun(binding: BindingView, session: ProviderSession): boolean {
    const { bindable, stores, syncers } = this.#deps;
    const exported = exportOf(session, binding.name);
    if (!exported) return true;
    const planned = plannedSyncers({ exported, binding, session, crds: stores.crds, bindable });
    return [...planned.keys()].every((crd) => syncers.isSyncing(binding.name, crd, 'drain'));
  }

  async #delete(
    binding: BindingView,
    crds: readonly CrdView[],
    release: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const { crdWriter, releaser } = this.#deps;
    const released = crds.filter(({ name }) => release.includes(name));
    await releaser.release(released, signal);
    for (const crd of crds) if (!crd.deleting) await crdWriter.delete(crd, binding, signal);
  }
}

function providerStateOf(session: ProviderSession | undefined): UnbindFacts['provider'] {
  if (!session) return 'noSession';
  const { state } = session;
  return state.kind === 'connecting' && state.problem !== undefined ? 'unreachable' : state.kind;
}

function exportStateOf(
  crd: CrdView,
  session: ProviderSession,
  { name }: BindingView,
  exportAbsent: boolean,
): BoundCrdState['exportState'] {
  const exported = exportOf(session, name);
  if (!exported) return exportAbsent ? 'notExported' : 'unverified';
  // It does not prove that the resource is no longer exported.
  if (exported.specProblem !== undefined) return 'unverified';
  if (!exported.resources.some((resource) => boundSchemaName(resource) === crd.name)) return 'notExported';
  const schema = session.stores.schemas.get(`${session.clusterNamespace}/${crd.name}`);
  return schema?.scope === crd.scope ? 'exported' : 'unverified';
}
