import { keyOf } from '../../api/object.ts';
import { done, notReady, type Reconciler, type Result } from '../../engine/result.ts';
import type { BindingView } from '../stores/views.ts';
import { Binder } from './binder.ts';
import { abandoned, type BindingParts, ownerless } from './binding-parts.ts';
import { lookupOf, servingSession } from './serving-session.ts';
import { Unbinder } from './unbinder.ts';

/** Everything about one APIServiceBinding: its conditions, what was made for it, and its end. The key is its name. */
export class BindingReconciler implements Reconciler {
  readonly #parts: BindingParts;
  readonly #binder: Binder;
  readonly #unbinder: Unbinder;

  constructor(parts: BindingParts) {
    this.#parts = parts;
    this.#binder = new Binder(parts);
    this.#unbinder = new Unbinder(parts);
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const binding = this.#parts.stores.bindings.get(name);
    const result = binding ? await this.#inStep(binding, signal) : done;
    // Last, because it may be held up by what an earlier binding of this name had and we have no rights to any more.
    await this.#releaseAbandoned(name, binding, signal);
    return result;
  }

  async #inStep(binding: BindingView, signal: AbortSignal): Promise<Result> {
    const { sessions, writer } = this.#parts;
    if (writer.isStale(binding)) return notReady('our own write in the store');
    const lookup = lookupOf(sessions, binding);
    if (lookup.kind === 'pending') return notReady(`Secret ${keyOf(binding.secretRef)}`);
    const provider = { lookup, session: servingSession(lookup) };
    return binding.deleting
      ? this.#unbinder.unbind(binding, provider, signal)
      : this.#binder.bind(binding, provider, signal);
  }

  /** When somebody took our finalizer off a binding, or there never was one. */
  async #releaseAbandoned(name: string, binding: BindingView | undefined, signal: AbortSignal): Promise<void> {
    const { client, releaser, stores, syncers } = this.#parts;
    const crds = abandoned(stores.crds, name, binding).filter((crd) => !syncers.isSyncing(name, crd.name));
    await releaser.release(await ownerless(client, name, releaser.left(crds), signal), signal);
  }
}
