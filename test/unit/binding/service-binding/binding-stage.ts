import { BindingReconciler } from '../../../../src/binding/service-binding/binding-controller.ts';
import { BindingWriter } from '../../../../src/binding/service-binding/binding-writer.ts';
import { CrdWriter } from '../../../../src/binding/service-binding/crd-writer.ts';
import { Releaser } from '../../../../src/binding/service-binding/releaser.ts';
import type { Syncer } from '../../../../src/binding/sync-engine/syncer.ts';
import type { Result } from '../../../../src/engine/result.ts';
import { conditionsOf, crdName, kettles, MemoryStage } from '../../../support/binding/memory-stage.ts';
import { exportManifest } from '../../../support/binding/objects.ts';

/** A binding and its reconciler, which a test runs with `look`. */
export class BindingStage extends MemoryStage {
  reconciler = this.make();
  readonly #serving = {
    binding: 'kettles',
    crd: crdName,
    mode: 'sync',
    syncer: working({ served: () => true }),
  } as const;

  /** Creates the reconciler, as after a restart. */
  make(allowed?: readonly string[]): BindingReconciler {
    const { deps, sessions, syncers } = this;
    this.reconciler = new BindingReconciler({
      ...deps,
      sessions,
      syncers,
      bindable: allowed,
      writer: new BindingWriter(deps),
      crdWriter: new CrdWriter({ ...deps, crds: deps.stores.crds }),
      releaser: new Releaser(deps),
    });
    return this.reconciler;
  }

  look(): Promise<Result> {
    return this.reconciler.reconcile('kettles', new AbortController().signal);
  }

  said(): ReturnType<typeof conditionsOf> {
    return conditionsOf(this.binding());
  }

  async bound(): Promise<void> {
    this.bind();
    this.offer();
    await this.look();
    this.establish();
    await this.serve();
  }

  /** Acts as a syncer that has listed the objects. */
  async serve(): Promise<void> {
    this.syncers.add(this.#serving);
    await this.look();
  }

  stopServing(): void {
    this.syncers.delete(this.#serving);
  }

  /** The finalizers of the object that `object()` creates. */
  finalizers(): readonly string[] | undefined {
    return this.consumer.find(kettles, { namespace: 'team-a', name: 'blue' })?.metadata.finalizers;
  }
}

/** The spec of an export with more resources than are allowed. */
export const tooLarge = () => ({
  ...(exportManifest().spec as object),
  resources: Array.from({ length: 257 }, (_, i) => ({ group: 'kitchen.example', resource: `kettles${i}` })),
});

export const working = (syncer: Partial<Syncer> = {}): Syncer => ({
  controllers: [],
  resync() {},
  allowDeletes() {},
  remaining: () => 0,
  problems: () => [],
  refusedWatches: () => [],
  served: () => false,
  close() {},
  ...syncer,
});
