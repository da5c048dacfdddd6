import type { SyncedObject } from './synced-object.ts';

/** Tells a copy that follows its object from one that was in step and has been changed or deleted by somebody in the provider. */
export class Drift {
  readonly #inStep = new Map<string, { readonly uid: string; readonly generation: number }>();

  /** The copy has all that the object holds now. */
  inStep({ key, uid, object }: SyncedObject): void {
    const { generation } = object.metadata;
    if (generation === undefined) this.#inStep.delete(key);
    else if (!this.wasInStep({ key, uid, object })) this.#inStep.set(key, { uid, generation });
  }

  /** Whether the copy once had all that the object holds now, so that a write is a repair. */
  wasInStep({ key, uid, object }: Pick<SyncedObject, 'key' | 'uid' | 'object'>): boolean {
    const known = this.#inStep.get(key);
    return known !== undefined && known.uid === uid && known.generation === object.metadata.generation;
  }

  forget(key: string): void {
    this.#inStep.delete(key);
  }

  clear(): void {
    this.#inStep.clear();
  }
}
