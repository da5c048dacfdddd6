import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { allowDeletesAnnotation, bindConditions, resyncAnnotation } from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { ClaimsOptions } from '../claims/open-claims.ts';
import { type BindConditionUpdate, conditionFalse, conditionTrue, findCondition } from '../conditions.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { RunningSyncers } from '../service-binding/running-syncers.ts';
import { plannedClaims, plannedSyncers } from '../service-binding/sync-plan.ts';
import { lookupOf, type ProviderSession, type Sessions, servingSession } from '../sessions/provider-session.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import type { SyncerOptions } from '../sync/open-syncer.ts';
import type { Syncer } from '../sync-engine/syncer.ts';
import type { ExportWriter } from './export-writer.ts';
import type { SyncerSet, WantedSyncer } from './syncer-set.ts';

export interface ExportReconcilerDeps extends BindingDeps, ExportOptions {
  readonly session: ProviderSession;
  readonly sessions: Sessions;
  readonly set: SyncerSet;
  readonly writer: ExportWriter;
}

/** Runs the syncers of an export and writes its status. Key: `<cluster namespace>/<export>`. */
export class ExportReconciler implements Reconciler {
  readonly #deps: ExportReconcilerDeps;
  /** At the last reconcile. */
  readonly #lastAnnotations = new Map<
    string,
    { readonly resync: string | undefined; readonly allowDeletes: string | undefined }
  >();

  constructor(deps: ExportReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { session, stores, set } = this.#deps;
    const { name } = nameOf(key);
    const binding = stores.bindings.get(name);
    const servedBy = this.#servedBy(binding);
    if (servedBy === 'unknown') return notReady('the session of the binding');
    const servedBinding = servedBy === 'this session' ? binding : undefined;
    const exported = session.stores.exports.get(key);
    await set.apply(key, name, exported && servedBinding ? this.#wanted(exported, servedBinding) : new Map());
    this.#applyAnnotations(key, servedBinding);
    // With other credentials for the same provider, that session reports the status.
    if (exported && servedBy !== 'same provider') await this.#reportStatus(exported, servedBinding, signal);
    return done;
  }

  /** `unknown`: the Secret of the binding has not been read yet. */
  #servedBy(binding: BindingView | undefined): 'this session' | 'same provider' | 'none' | 'unknown' {
    if (!binding) return 'none';
    const { session, sessions } = this.#deps;
    const lookup = lookupOf(sessions, binding);
    const serving = servingSession(lookup);
    if (serving === session) return 'this session';
    if (lookup.kind === 'pending') return 'unknown';
    return serving && isSameProvider(serving, session) ? 'same provider' : 'none';
  }

  /** True also while its provider is not known. */
  #mayShareProvider(binding: BindingView): boolean {
    const { session, sessions } = this.#deps;
    const serving = servingSession(lookupOf(sessions, binding));
    return serving === undefined || isSameProvider(serving, session);
  }

  #wanted(exported: ExportView, binding: BindingView): Map<string, WantedSyncer> {
    const { session, stores, bindable, openSyncer, openClaims } = this.#deps;
    const facts = { exported, binding, session, crds: stores.crds, bindable };
    const wanted = new Map<string, WantedSyncer>();
    for (const [name, { schema, mode, fingerprint }] of plannedSyncers(facts)) {
      const open = (onChange: () => void) => openSyncer({ session, exported, schema, mode, onChange }, this.#deps);
      wanted.set(`schema ${name}`, { fingerprint, crd: name, mode, open });
    }
    const claims = plannedClaims(facts);
    if (claims) {
      const { exported, mode, fingerprint } = claims;
      const mayShareProvider = (other: BindingView): boolean => this.#mayShareProvider(other);
      const open = (onChange: () => void) =>
        openClaims({ session, exported, mode, mayShareProvider, onChange }, this.#deps);
      wanted.set('claims', { fingerprint, crd: undefined, mode, open });
    }
    return wanted;
  }

  /** Acts on changes; a value that was set while no server ran has no effect. */
  #applyAnnotations(key: string, binding: BindingView | undefined): void {
    const before = this.#lastAnnotations.get(key);
    if (!binding) {
      this.#lastAnnotations.delete(key);
      return;
    }
    const { set } = this.#deps;
    const { [resyncAnnotation]: resync, [allowDeletesAnnotation]: allowDeletes } = binding.annotations;
    this.#lastAnnotations.set(key, { resync, allowDeletes });
    if (!before) return;
    if (resync !== undefined && resync !== before.resync) set.resync(key);
    if (allowDeletes !== undefined && allowDeletes !== before.allowDeletes) set.allowDeletes(key);
  }

  /** First of the BoundSchemas whose definition the binding owns, then of the export. */
  async #reportStatus(exported: ExportView, binding: BindingView | undefined, signal: AbortSignal): Promise<void> {
    const { session, stores, writer } = this.#deps;
    const refused: string[] = [];
    for (const resource of binding ? exported.resources : []) {
      const name = boundSchemaName(resource);
      const schema = session.stores.schemas.get(`${session.clusterNamespace}/${name}`);
      const crd = stores.crds.get(name);
      if (!binding || !schema || !crd || !isOwnedBy(crd.ownerReferences, binding)) continue;
      const refusal = await writer.writeSchema(schema, crd, signal);
      if (refusal !== undefined) refused.push(refusal);
    }
    await writer.writeExport(exported, exportConditions(exported, binding, refused), signal);
  }
}

/** The cluster namespaces have the same name and, if known, the same uid. */
function isSameProvider(a: ProviderSession, b: ProviderSession): boolean {
  const areUidsKnown = a.clusterNamespaceUid !== undefined && b.clusterNamespaceUid !== undefined;
  return (
    a.clusterNamespace === b.clusterNamespace && (!areUidsKnown || a.clusterNamespaceUid === b.clusterNamespaceUid)
  );
}

export interface ExportOptions {
  readonly openSyncer: (options: SyncerOptions, deps: BindingDeps) => Syncer;
  readonly openClaims: (options: ClaimsOptions, deps: BindingDeps) => Syncer;
  readonly syncers: RunningSyncers;
  readonly bindable?: readonly string[] | undefined;
}

const { connected, consumerInSync, schemaInSync } = bindConditions;

/** `refused`: why the provider rejects the status of BoundSchemas. */
function exportConditions(
  { name, specProblem }: Pick<ExportView, 'name' | 'specProblem'>,
  binding: BindingView | undefined,
  refused: readonly string[] = [],
): BindConditionUpdate[] {
  if (!binding) {
    return [
      conditionFalse(
        connected,
        'Info',
        'APIServiceBindingNotFound',
        `the consumer has no APIServiceBinding ${name} for this export`,
      ),
      conditionFalse(consumerInSync, 'Info', 'NA', `the consumer has no APIServiceBinding ${name} for this export`),
    ];
  }
  if (specProblem !== undefined) {
    const message = `the consumer cannot use APIServiceExport ${name}: ${specProblem}; correct it`;
    return [conditionFalse(connected, 'Error', 'APIServiceExportInvalid', message), inSyncCondition(binding)];
  }
  return [connectedCondition(refused), inSyncCondition(binding)];
}

function connectedCondition(refused: readonly string[]): BindConditionUpdate {
  return refused.length > 0
    ? conditionFalse(connected, 'Warning', 'BoundSchemasNotValid', refused.join('. '))
    : conditionTrue(connected);
}

/** SchemaInSync of the binding becomes ConsumerInSync of the export. */
function inSyncCondition({ name, conditions }: BindingView): BindConditionUpdate {
  const current = findCondition(conditions, schemaInSync);
  if (!current)
    return conditionFalse(
      consumerInSync,
      'Info',
      'Unknown',
      `APIServiceBinding ${name} has no condition ${schemaInSync} yet`,
    );
  const { lastTransitionTime: _, ...update } = current;
  return { ...update, type: consumerInSync };
}
