import { apiServiceBindings } from '../../api/binding/names.ts';
import type { KubeObject } from '../../api/object.ts';
import { customResourceDefinitions } from '../../api/resources.ts';
import { canonicalJson } from '../../kit/canonical-json.ts';
import { describe } from '../../kit/errors.ts';
import { type Client, findObject } from '../../kube/client.ts';
import { ApiError, isAlreadyExists, isConflict, isNotFound } from '../../kube/errors.ts';
import { regarding } from '../../kube/event-object.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Store } from '../../kube/store.ts';
import type { BindingView, CrdView } from '../stores/consumer-stores.ts';
import type { BoundSchemaView, ExportView } from '../stores/provider-stores.ts';
import { type BoundCrd, boundCrd, crdManifest } from './bound-crd.ts';
import {
  type CrdOutcome,
  foreignCrd,
  inSync,
  namesOutcome,
  notWritten,
  type RefusedReason,
  refused,
  terminating,
} from './crd-outcome.ts';
import { isOwnedBy } from './owner.ts';

export interface CrdWriterDeps {
  readonly client: Client;
  readonly crds: Store<CrdView>;
  readonly events: EventRecorder;
}

/** A CRD when it last matched its BoundSchema. */
interface Confirmed {
  readonly uid: string;
  readonly generation: number;
  readonly canonicalSpec: string;
}

/** A retry would repeat them. */
const permanentRejections: readonly number[] = [400, 413, 422];

/** Creates and updates the CRDs of bindings from BoundSchemas, never those of another owner. */
export class CrdWriter {
  readonly #client: Client;
  readonly #crds: Store<CrdView>;
  readonly #events: EventRecorder;
  /** Their generations are compared: an API server may store another spec than was written. */
  readonly #confirmed = new Map<string, Confirmed>();

  constructor({ client, crds, events }: CrdWriterDeps) {
    this.#client = client;
    this.#crds = crds;
    this.#events = events;
  }

  /** Errors of calls become outcomes; rejects only when `signal` has aborted. */
  async ensure(
    schema: BoundSchemaView,
    exported: ExportView,
    binding: BindingView,
    signal: AbortSignal,
  ): Promise<CrdOutcome> {
    const wanted = boundCrd(schema, exported);
    if ('problem' in wanted) return refused('CustomResourceDefinitionCreateFailed', wanted.problem);
    const crd = this.#crds.get(schema.name);
    try {
      return crd
        ? await this.#update(crd, wanted, binding, signal)
        : await this.#create(schema, wanted, binding, signal);
    } catch (error) {
      signal.throwIfAborted();
      return outcomeOf(error, schema.name, crd !== undefined);
    }
  }

  /** Unless it was replaced or has another owner. Does not wait for the end of the deletion. */
  async delete({ name, uid }: CrdView, binding: BindingView, signal: AbortSignal): Promise<void> {
    const live = await this.#live(name, signal);
    if (live?.uid !== uid || !isOwnedBy(live.ownerReferences, binding)) return;
    const { resourceVersion = '' } = live;
    await this.#client.delete(customResourceDefinitions, { name }, { uid, resourceVersion, signal });
    this.forget(name);
  }

  /** Call when the definition is deleted. */
  forget(name: string): void {
    this.#confirmed.delete(name);
  }

  async #live(name: string, signal: AbortSignal): Promise<KubeObject['metadata'] | undefined> {
    return (await findObject(this.#client, customResourceDefinitions, { name }, { signal }))?.metadata;
  }

  async #create(
    schema: BoundSchemaView,
    wanted: BoundCrd,
    binding: BindingView,
    signal: AbortSignal,
  ): Promise<CrdOutcome> {
    try {
      const manifest = crdManifest(schema, wanted, binding);
      this.#confirm(await this.#client.create(customResourceDefinitions, manifest, { signal }), wanted);
      this.#recordUnboundVersions(schema.name, wanted, binding);
      return inSync;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      // The store does not show the definition yet.
      return this.#updateLive(schema.name, wanted, binding, signal);
    }
  }

  async #update(crd: CrdView, wanted: BoundCrd, binding: BindingView, signal: AbortSignal): Promise<CrdOutcome> {
    if (!isOwnedBy(crd.ownerReferences, binding)) return foreignCrd(crd.name, binding.name);
    if (crd.deleting) return terminating(crd.name);
    if (!this.#isConfirmed(crd, wanted)) {
      const outcome = await this.#updateLive(crd.name, wanted, binding, signal);
      if (outcome.kind !== 'inSync') return outcome;
    }
    return namesOutcome(crd);
  }

  async #updateLive(name: string, wanted: BoundCrd, binding: BindingView, signal: AbortSignal): Promise<CrdOutcome> {
    const live = await this.#client.get(customResourceDefinitions, { name }, { signal });
    if (!isOwnedBy(live.metadata.ownerReferences, binding)) return foreignCrd(name, binding.name);
    if (live.metadata.deletionTimestamp !== undefined) return terminating(name);
    if (canonicalJson(live.spec) === wanted.canonicalSpec) {
      this.#confirm(live, wanted);
      return inSync;
    }
    const replacement = { ...live, spec: wanted.spec };
    this.#confirm(await this.#client.replace(customResourceDefinitions, replacement, { signal }), wanted);
    this.#recordUnboundVersions(name, wanted, binding);
    return inSync;
  }

  /** An Event if the other versions need a conversion webhook. */
  #recordUnboundVersions(crd: string, { onlyVersion }: BoundCrd, { name, uid }: BindingView): void {
    if (onlyVersion === undefined) return;
    this.#events.record({
      regarding: regarding(apiServiceBindings, { name, uid }),
      type: 'Warning',
      reason: 'ConversionNotBound',
      action: 'Bind',
      note: `${crd} is served in version ${onlyVersion} only: its other versions need a conversion webhook of the provider, and this cluster does not send its objects there; ask the provider for versions that need no webhook`,
    });
  }

  #isConfirmed({ name, uid, generation }: CrdView, { canonicalSpec }: BoundCrd): boolean {
    const confirmed = this.#confirmed.get(name);
    if (confirmed === undefined || confirmed.canonicalSpec !== canonicalSpec) return false;
    return confirmed.uid === uid && confirmed.generation === generation;
  }

  #confirm({ metadata: { name, uid = '', generation = 0 } }: KubeObject, { canonicalSpec }: BoundCrd): void {
    this.#confirmed.set(name, { uid, generation, canonicalSpec });
  }
}

function outcomeOf(error: unknown, name: string, existed: boolean): CrdOutcome {
  if (isConflict(error) || isNotFound(error)) return { kind: 'conflict', cause: error };
  if (error instanceof ApiError && permanentRejections.includes(error.code)) {
    const reason: RefusedReason = existed
      ? 'CustomResourceDefinitionUpdateFailed'
      : 'CustomResourceDefinitionCreateFailed';
    return refused(
      reason,
      `the API server of this cluster rejects CustomResourceDefinition ${name}: ${describe(error)}; ask the provider to correct its BoundSchema`,
    );
  }
  return notWritten(`CustomResourceDefinition ${name}`, describe(error), error);
}
