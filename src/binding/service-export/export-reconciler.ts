import { boundSchemaName } from '../../api/binding/group-resource.ts';
import { allowDeletesAnnotation, bindConditions, resyncAnnotation } from '../../api/binding/names.ts';
import { nameOf } from '../../api/object.ts';
import { done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import { type BindConditionUpdate, conditionFalse, conditionTrue, findCondition } from '../conditions.ts';
import type { BindingDeps } from '../deps.ts';
import { isOwnedBy } from '../service-binding/owner.ts';
import type { ObjectSyncer, RunningSyncers } from '../service-binding/running-syncers.ts';
import { plannedClaims, plannedSyncers, syncFacts } from '../service-binding/sync-plan.ts';
import { lookupOf, type ProviderSession, type Sessions, servingSession } from '../sessions/provider-session.ts';
import type { BindingView } from '../stores/consumer-stores.ts';
import type { ExportView } from '../stores/provider-stores.ts';
import type { SyncerOptions } from '../sync/open-syncer.ts';
import type { Syncer, SyncMode } from '../sync-engine/kind.ts';
import type { ExportWriter } from './export-writer.ts';
import type { SyncerSet, WantedSyncer } from './syncer-set.ts';

export interface ExportReconcilerDeps extends BindingDeps, ExportOptions {
  readonly session: ProviderSession;
  readonly sessions: Sessions;
  readonly set: SyncerSet;
  readonly writer: ExportWriter;
}

/** Keeps the syncers of an export running, or not, and tells its provider how it is used. The key is `<cluster namespace>/<export>`. */
export class ExportReconciler implements Reconciler {
  readonly #deps: ExportReconcilerDeps;
  /** By key: what the binding's annotations asked for. */
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
    const bound = this.#bindingUse(binding);
    if (bound === 'unknown') return notReady('the session of the binding');
    const ours = bound === 'us' ? binding : undefined;
    const exported = session.stores.exports.get(key);
    await set.apply(key, name, exported && ours ? this.#wanted(exported, ours) : new Map());
    this.#applyAnnotations(key, ours);
    // To the provider a binding that has moved on to new credentials has not gone.
    if (exported && bound !== 'same provider') await this.#reportStatus(exported, ours, signal);
    return done;
  }

  /** Whose binding it is, as far as this session is concerned. */
  #bindingUse(binding: BindingView | undefined): 'us' | 'nobody' | 'same provider' | 'unknown' {
    if (!binding) return 'nobody';
    const { session, sessions } = this.#deps;
    const lookup = lookupOf(sessions, binding);
    const serving = servingSession(lookup);
    if (serving === session) return 'us';
    if (lookup.kind === 'pending') return 'unknown';
    return serving && isSameProvider(serving, session) ? 'same provider' : 'nobody';
  }

  #mayLeadHere(binding: BindingView): boolean {
    const { session, sessions } = this.#deps;
    const serving = servingSession(lookupOf(sessions, binding));
    return serving === undefined || isSameProvider(serving, session);
  }

  #wanted(exported: ExportView, binding: BindingView): Map<string, WantedSyncer> {
    const { session, stores, allowed, openSyncer, openClaims } = this.#deps;
    const facts = syncFacts({ exported, binding, session, crds: stores.crds, allowed });
    const wanted = new Map<string, WantedSyncer>();
    for (const [name, { schema, mode, fingerprint }] of plannedSyncers(facts)) {
      const open = (onChange: () => void) => openSyncer({ session, exported, schema, mode, onChange }, this.#deps);
      wanted.set(`schema ${name}`, { fingerprint, crd: name, mode, open });
    }
    const claims = plannedClaims(facts);
    if (claims) {
      const { exported, mode, fingerprint } = claims;
      const options = { session, exported, mode, mayLeadHere: (other: BindingView) => this.#mayLeadHere(other) };
      const open = (onProblems: () => void) => openClaims({ ...options, onProblems }, this.#deps);
      wanted.set('claims', { fingerprint, crd: undefined, mode, open });
    }
    return wanted;
  }

  /** Acts on annotations whose value has changed since the last look; a syncer that starts looks at everything anyway. */
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

  async #reportStatus(exported: ExportView, binding: BindingView | undefined, signal: AbortSignal): Promise<void> {
    const { session, stores, writer } = this.#deps;
    const refused: string[] = [];
    for (const resource of binding ? exported.resources : []) {
      const name = boundSchemaName(resource);
      const schema = session.stores.schemas.get(`${session.clusterNamespace}/${name}`);
      const crd = stores.crds.get(name);
      if (!binding || !schema || !crd || !isOwnedBy(crd.ownerReferences, binding)) continue;
      const refusal = await writer.schema(schema, crd, signal);
      if (refusal !== undefined) refused.push(refusal);
    }
    await writer.export(exported, exportConditions(exported, binding, refused), signal);
  }
}

/** Unless the uids are known and differ: a namespace of the same name is another one in another cluster. */
function isSameProvider(a: ProviderSession, b: ProviderSession): boolean {
  const known = a.clusterNamespaceUid !== undefined && b.clusterNamespaceUid !== undefined;
  return a.clusterNamespace === b.clusterNamespace && (!known || a.clusterNamespaceUid === b.clusterNamespaceUid);
}

/** What an export's provider claims besides the bound objects. */
export interface ClaimOptions {
  readonly session: ProviderSession;
  /** Its claims are those that are honoured. */
  readonly exported: ExportView;
  readonly mode: SyncMode;
  /** Whether another binding leads to the same provider, or leads nobody knows where: what is claimed may be shared by it as well. */
  readonly mayLeadHere: (binding: BindingView) => boolean;
  /** To be called when its `problems()` may read differently, and outside of mode `sync` when its `held()` may. */
  readonly onProblems: () => void;
}

export interface ExportOptions {
  readonly openSyncer: (options: SyncerOptions, deps: BindingDeps) => Syncer;
  readonly openClaims: (options: ClaimOptions, deps: BindingDeps) => ObjectSyncer;
  /** Shared by the controllers of all sessions, and with the controller of bindings. */
  readonly syncers: RunningSyncers;
  /** What providers may bind here, as `<resource>.<group>`; undefined means anything. */
  readonly allowed?: readonly string[] | undefined;
}

const { connected, consumerInSync, schemaInSync } = bindConditions;

/** What a provider is told of an export; `binding` is undefined when nobody binds it here, or another provider's is bound. */
function exportConditions(
  { name, unreadable }: Pick<ExportView, 'name' | 'unreadable'>,
  binding: BindingView | undefined,
  refused: readonly string[] = [],
): BindConditionUpdate[] {
  if (!binding) {
    return [
      conditionFalse(
        connected,
        'Info',
        'APIServiceBindingNotFound',
        `the consumer has no APIServiceBinding ${name} for it`,
      ),
      conditionFalse(consumerInSync, 'Info', 'NA', `the consumer has no APIServiceBinding ${name} for it`),
    ];
  }
  if (unreadable !== undefined) {
    const message = `APIServiceExport ${name} cannot be read by the consumer: ${unreadable}`;
    return [conditionFalse(connected, 'Error', 'APIServiceExportInvalid', message), inSyncCondition(binding)];
  }
  return [connectedCondition(refused), inSyncCondition(binding)];
}

function connectedCondition(refused: readonly string[]): BindConditionUpdate {
  return refused.length > 0
    ? conditionFalse(connected, 'Warning', 'BoundSchemasNotValid', refused.join('. '))
    : conditionTrue(connected);
}

/** What the binding says of its schemas. */
function inSyncCondition({ name, conditions }: BindingView): BindConditionUpdate {
  const said = findCondition(conditions, schemaInSync);
  if (!said) return conditionFalse(consumerInSync, 'Info', 'Unknown', `APIServiceBinding ${name} does not say yet`);
  const { lastTransitionTime: _, ...update } = said;
  return { ...update, type: consumerInSync };
}
