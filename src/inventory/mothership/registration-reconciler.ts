import { type FindingOf, mergeConditions } from '../../api/conditions.ts';
import { componentReconcilers, registrationConditions } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Client } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Breakers } from './breakers.ts';
import type { Registrations } from './registrations.ts';

export interface RegistrationReconcilerDeps {
  readonly client: Client;
  readonly registrations: Registrations;
  readonly breakers: Breakers;
  readonly clock: Clock;
}

/** Tells in each registration what has been found out about it. */
export class RegistrationReconciler implements Reconciler {
  readonly #deps: RegistrationReconcilerDeps;

  constructor(deps: RegistrationReconcilerDeps) {
    this.#deps = deps;
  }

  async reconcile(component: string, signal: AbortSignal): Promise<Result> {
    const { client, registrations, clock } = this.#deps;
    const view = registrations.view(component);
    if (!view) return done;
    const generation = view.registration.generation;
    const conditions = mergeConditions(view.conditions, this.#findings(component), clock.now(), { generation });
    if (conditions === view.conditions) return done;
    try {
      const patch = { metadata: { uid: view.uid }, status: { conditions } };
      await client.mergePatch(componentReconcilers, { name: component }, patch, { signal, subresource: 'status' });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return done;
  }

  #findings(component: string): FindingOf<Condition>[] {
    const { registrations, breakers } = this.#deps;
    const { accepted, cyclic, reachable } = registrationConditions;
    const refusal = registrations.refusal(component);
    const circle = registrations.circle(component);
    return [
      refusal === undefined
        ? { type: accepted, status: 'True', reason: 'Accepted', message: '' }
        : { type: accepted, status: 'False', reason: 'Refused', message: refusal },
      circle === undefined
        ? { type: cyclic, status: 'False', reason: 'NoCircle', message: '' }
        : {
            type: cyclic,
            status: 'True',
            reason: 'ReadsItself',
            message: `what it writes comes back to it: ${[...circle, circle[0]].join(' → ')}; fine as long as values settle`,
          },
      breakers.isOpen(component)
        ? {
            type: reachable,
            status: 'False',
            reason: 'NotAnswering',
            message: 'its endpoint refuses calls; it is probed now and then',
          }
        : { type: reachable, status: 'True', reason: 'Answering', message: '' },
    ];
  }
}
