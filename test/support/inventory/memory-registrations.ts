import { componentReconcilers } from '../../../src/api/inventory/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { Registrations } from '../../../src/inventory/manager/registrations.ts';
import { type RegistrationView, registrationView } from '../../../src/inventory/stores/registration-view.ts';
import type { Clock } from '../../../src/kit/clock.ts';
import { InformerStore } from '../../../src/kube/informer-store.ts';
import { silentLog } from '../../../src/kube/log.ts';

/** Fields of a registration in a test; the others have defaults. */
export interface RegistrationSeed {
  readonly name: string;
  /** Default: the previous generation plus one. */
  readonly generation?: number;
  readonly [field: string]: unknown;
}

/** Registrations in memory, with the store that the manager watches. */
export class MemoryRegistrations {
  readonly registrations: Registrations;
  readonly #store: InformerStore<RegistrationView>;
  readonly #objects = new Map<string, KubeObject>();
  #version = 0;

  constructor(clock: Clock, seeds: readonly RegistrationSeed[] = []) {
    this.#store = new InformerStore({ resource: componentReconcilers, project: registrationView }, clock, silentLog);
    const list = this.#store.beginList();
    list.add(seeds.map((seed) => this.#object(seed)));
    list.commit();
    this.registrations = new Registrations(this.#store);
  }

  put(seed: RegistrationSeed): void {
    const isNew = !this.#objects.has(seed.name);
    const object = this.#object(seed);
    this.#store.apply(isNew ? 'ADDED' : 'MODIFIED', object, String(this.#version));
  }

  generation(name: string): number {
    return this.#objects.get(name)?.metadata.generation ?? 0;
  }

  remove(name: string): void {
    const object = this.#objects.get(name);
    this.#objects.delete(name);
    this.#version += 1;
    if (object) this.#store.apply('DELETED', object, String(this.#version));
  }

  #object({ name, generation: given, ...spec }: RegistrationSeed): KubeObject {
    this.#version += 1;
    const generation = given ?? (this.#objects.get(name)?.metadata.generation ?? 0) + 1;
    const object: KubeObject = {
      apiVersion: 'inventory.drawbridge.dev/v1alpha1',
      kind: 'ComponentReconciler',
      metadata: { name, uid: `registration-${name}`, resourceVersion: String(this.#version), generation },
      spec: { endpoint: { url: 'http://127.0.0.1:1' }, ...spec },
    };
    this.#objects.set(name, object);
    return object;
  }
}
