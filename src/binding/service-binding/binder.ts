import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { clusterBindingName } from '../../api/binding/names.ts';
import { after, done, type Result, retry, retryConflict } from '../../engine/result.ts';
import { describe } from '../../kit/errors.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { ProviderSession } from '../sessions/provider-session.ts';
import type { BindingView, CrdView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import { bindingConditions, type ExportFacts, problemsRefreshMs } from './binding-conditions.ts';
import {
  type BindingReconcilerDeps,
  type BoundSession,
  bindingFacts,
  exportOf,
  isExportAbsent,
  ownedCrds,
} from './binding-lookups.ts';
import type { BoundStatus } from './binding-writer.ts';
import { type CrdOutcome, missingSchemaOutcome, notAllowed, notWritten } from './crd-outcome.ts';
import { judgeClaims } from './sync-plan.ts';

/** Writes the CRDs and the status of a binding. Releases objects of kinds no longer exported. */
export class Binder {
  readonly #deps: BindingReconcilerDeps;

  constructor(deps: BindingReconcilerDeps) {
    this.#deps = deps;
  }

  /** Failed writes of the finalizer or of a CRD become a `CrdOutcome`; rejects with others. */
  async bind(binding: BindingView, provider: BoundSession, signal: AbortSignal): Promise<Result> {
    const { session } = provider;
    const syncedSession = session?.state.kind === 'synced' ? session : undefined;
    const ensured = syncedSession ? await this.#ensureFinalizer(binding, syncedSession, signal) : { binding };
    const exportFacts =
      syncedSession && (await this.#collectExportFacts(ensured.binding, syncedSession, ensured.problem, signal));
    const facts = bindingFacts(this.#deps, ensured.binding, provider, { exportFacts });
    await this.#deps.writer.writeStatus(
      ensured.binding,
      bindingConditions(facts),
      syncedSession ? this.#boundStatus(syncedSession, exportFacts) : {},
      signal,
    );
    if (syncedSession) await this.#releaseUnexported(ensured.binding, syncedSession, exportFacts?.exported, signal);
    return resultOf(exportFacts?.outcomes ?? [], facts.problems);
  }

  /** Before anything is created for the binding, so that its deletion waits for the cleanup. */
  async #ensureFinalizer(
    binding: BindingView,
    session: ProviderSession,
    signal: AbortSignal,
  ): Promise<{ binding: BindingView; problem?: CrdOutcome }> {
    const { stores, writer } = this.#deps;
    if (!exportOf(session, binding.name) && ownedCrds(stores.crds, binding).length === 0) return { binding };
    try {
      return { binding: await writer.ensureFinalizer(binding, signal) };
    } catch (error) {
      signal.throwIfAborted();
      if (isConflict(error) || isNotFound(error)) return { binding, problem: { kind: 'conflict', cause: error } };
      const what = `the finalizer of APIServiceBinding ${binding.name}`;
      return { binding, problem: notWritten(what, describe(error), error) };
    }
  }

  async #collectExportFacts(
    binding: BindingView,
    session: ProviderSession,
    problem: CrdOutcome | undefined,
    signal: AbortSignal,
  ): Promise<ExportFacts> {
    const { stores, clusterNamespace } = session;
    const exported = exportOf(session, binding.name);
    const outcomes = problem ? [problem] : await this.#outcomes(exported, binding, session, signal);
    return {
      clusterNamespace,
      exported,
      request: stores.exportRequests.get(`${clusterNamespace}/${binding.name}`),
      outcomes,
      unserved: outcomes.every(({ kind }) => kind === 'inSync') ? this.#unserved(exported, binding) : [],
      claims: exported ? judgeClaims(exported, binding) : { accepted: [], refused: [] },
    };
  }

  #unserved(exported: ExportView | undefined, { name }: BindingView): string[] {
    const { syncers } = this.#deps;
    return (exported?.resources ?? []).map(boundSchemaName).filter((crd) => !syncers.isServed(name, crd));
  }

  async #outcomes(
    exported: ExportView | undefined,
    binding: BindingView,
    session: ProviderSession,
    signal: AbortSignal,
  ): Promise<CrdOutcome[]> {
    if (!exported) return [];
    const outcomes: CrdOutcome[] = [];
    for (const resource of exported.resources) {
      outcomes.push(await this.#outcome(boundSchemaName(resource), exported, binding, session, signal));
    }
    return outcomes;
  }

  #outcome(
    schemaName: string,
    exported: ExportView,
    binding: BindingView,
    { client, stores, clusterNamespace }: ProviderSession,
    signal: AbortSignal,
  ): Promise<CrdOutcome> | CrdOutcome {
    const { bindable, crdWriter } = this.#deps;
    if (bindable && !bindable.includes(schemaName)) return notAllowed(schemaName);
    const schema = stores.schemas.get(`${clusterNamespace}/${schemaName}`);
    return schema
      ? crdWriter.ensure(schema, exported, binding, signal)
      : missingSchemaOutcome(client, { namespace: clusterNamespace, name: schemaName }, signal);
  }

  #boundStatus({ stores, clusterNamespace }: ProviderSession, exportFacts: ExportFacts | undefined): BoundStatus {
    const { bindable } = this.#deps;
    // If the export is missing or not valid, these fields of the status stay.
    const exported = exportFacts?.exported?.specProblem === undefined ? exportFacts?.exported : undefined;
    const provider = stores.clusterBindings.get(`${clusterNamespace}/${clusterBindingName}`);
    const isBound = (name: string): boolean =>
      (!bindable || bindable.includes(name)) && stores.schemas.get(`${clusterNamespace}/${name}`) !== undefined;
    return {
      providerPrettyName: provider?.providerPrettyName ?? '',
      boundSchemas: exported?.resources.filter((resource) => isBound(boundSchemaName(resource))),
      permissionClaims: exported && exportFacts?.claims.accepted,
    };
  }

  /** No syncer removes the finalizer from these objects any more. */
  async #releaseUnexported(
    binding: BindingView,
    session: ProviderSession,
    exported: ExportView | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (exported?.specProblem !== undefined) return;
    const { releaser, stores, syncers } = this.#deps;
    const isExported = ({ name }: CrdView): boolean =>
      exported?.resources.some((resource) => boundSchemaName(resource) === name) ?? false;
    const crds = ownedCrds(stores.crds, binding);
    releaser.forget(crds.filter(isExported));
    const idle = crds.filter((crd) => !isExported(crd) && !syncers.isSyncing(binding.name, crd.name));
    const unreleased = releaser.unreleased(idle);
    if (unreleased.length === 0 || !(exported || (await isExportAbsent(session, binding.name, signal)))) return;
    await releaser.release(unreleased, signal);
  }
}

function resultOf(outcomes: readonly CrdOutcome[], problems: readonly string[]): Result {
  for (const outcome of outcomes)
    if ('cause' in outcome) return outcome.kind === 'conflict' ? retryConflict(outcome.cause) : retry(outcome.cause);
  return problems.length > 0 ? after(problemsRefreshMs) : done;
}
