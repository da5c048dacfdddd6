import { isDeepStrictEqual } from 'node:util';
import { type ConditionUpdate, mergeConditions } from '../../api/conditions.ts';
import { componentLabel, componentReconcilers, registrationConditions } from '../../api/inventory/names.ts';
import type { Condition } from '../../api/object.ts';
import { done, type Reconciler, type Result, retryConflict } from '../../engine/result.ts';
import { type Clock, formatTime } from '../../kit/clock.ts';
import { overlap } from '../../kit/json-pointer.ts';
import { Listeners } from '../../kit/listeners.ts';
import type { Client } from '../../kube/client.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import type { Store, StoreEvent } from '../../kube/store.ts';
import { registrationViolation } from '../policy/registration-rules.ts';
import type { Registration } from '../registration.ts';
import type { RegistrationView } from '../stores/registration-view.ts';
import type { Breakers, OpenedBreaker } from './breakers.ts';

/** From a local cache. `get` and `all` also return registrations that cannot be used. */
export interface RegistrationLister {
  get(component: string): Registration | undefined;
  all(): Iterable<Registration>;
  /** Why the server cannot use the registration, if so. */
  problem(component: string): string | undefined;
}

/** Created, changed, or became usable or unusable. */
export interface RegistrationChange {
  readonly registration: Registration;
  /** Whether it was created, or its endpoint or CA bundle changed. */
  readonly isNewEndpoint: boolean;
}

/** The registrations. Of two that conflict, the younger one is unusable. */
export class Registrations implements RegistrationLister {
  readonly #store: Store<RegistrationView>;
  readonly #problems = new Map<string, string>();
  readonly #listeners = new Listeners<readonly RegistrationChange[]>();

  constructor(store: Store<RegistrationView>) {
    this.#store = store;
    store.subscribe((event) => this.#onEvent(event));
  }

  get(component: string): Registration | undefined {
    return this.#store.get(component)?.registration;
  }

  *all(): Iterable<Registration> {
    for (const { registration } of this.#store.list()) yield registration;
  }

  problem(component: string): string | undefined {
    return this.#problems.get(component);
  }

  /** With its conditions. */
  view(component: string): RegistrationView | undefined {
    return this.#store.get(component);
  }

  /** Not for changes before the sync. A deletion always notifies, possibly without changes. */
  onChange(listener: (changes: readonly RegistrationChange[]) => void): () => void {
    return this.#listeners.add(listener);
  }

  whenSynced(signal: AbortSignal): Promise<void> {
    return this.#store.whenSynced(signal);
  }

  /** A shortest cycle by which the component's outputs affect its inputs, this one first. */
  cycle(component: string): readonly string[] | undefined {
    const start = this.get(component);
    return start && cycleFrom(start, [...this.all()]);
  }

  #onEvent(event: StoreEvent<RegistrationView>): void {
    const problemsBefore = new Map(this.#problems);
    this.#validateAll();
    if (!this.#store.synced) return;
    const before = event.type === 'updated' ? event.before.registration : undefined;
    const current = event.type === 'deleted' ? undefined : event.now.registration;
    const changes = this.#changes(problemsBefore, current?.name);
    if (current && current.generation !== before?.generation) {
      changes.unshift({ registration: current, isNewEndpoint: !before || !sameEndpoint(before, current) });
    }
    // Statuses of entries may contain a deleted component.
    if (changes.length > 0 || event.type === 'deleted') this.#listeners.notify(changes);
  }

  /** Oldest first. An unusable registration makes no other one unusable. */
  #validateAll(): void {
    this.#problems.clear();
    const views = [...this.#store.list()].sort((a, b) => a.createdMs - b.createdMs || (a.key < b.key ? -1 : 1));
    const older: { name: string; spec: RegistrationView['spec'] }[] = [];
    for (const { registration, spec, problem } of views) {
      const paths = { name: registration.name, spec };
      const message = problem ?? registrationViolation(paths, older)?.message;
      if (message === undefined) older.push(paths);
      else this.#problems.set(registration.name, message);
    }
  }

  #changes(problemsBefore: ReadonlyMap<string, string>, excludedName: string | undefined): RegistrationChange[] {
    return [...this.all()]
      .filter(({ name }) => name !== excludedName && problemsBefore.has(name) !== this.#problems.has(name))
      .map((registration) => ({ registration, isNewEndpoint: false }));
  }
}

const sameEndpoint = (a: Registration, b: Registration): boolean =>
  isDeepStrictEqual(a.endpoint, b.endpoint) && a.caBundle === b.caBundle;

function cycleFrom(start: Registration, all: readonly Registration[]): readonly string[] | undefined {
  const readersOf = ({ writes }: Registration): Registration[] =>
    all.filter(({ reads }) => reads.some((read) => writes.some((write) => overlap(read, write))));
  const predecessors = new Map<string, string | undefined>([[start.name, undefined]]);
  const frontier = [start];
  for (let node = frontier.shift(); node; node = frontier.shift()) {
    for (const reader of readersOf(node)) {
      if (reader.name === start.name) return pathTo(node.name, predecessors);
      if (predecessors.has(reader.name)) continue;
      predecessors.set(reader.name, node.name);
      frontier.push(reader);
    }
  }
  return undefined;
}

function pathTo(last: string, predecessors: ReadonlyMap<string, string | undefined>): string[] {
  const path: string[] = [];
  for (let name: string | undefined = last; name !== undefined; name = predecessors.get(name)) {
    path.unshift(name);
  }
  return path;
}

interface RegistrationReconcilerDeps {
  readonly client: Client;
  readonly registrations: Registrations;
  readonly breakers: Breakers;
  readonly clock: Clock;
}

/** Writes the conditions Accepted, Cyclic, and Reachable. */
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
    const conditions = mergeConditions(view.conditions, this.#conditions(component), clock.now(), { generation });
    if (conditions === view.conditions) return done;
    const { uid, resourceVersion } = view;
    try {
      const patch = { metadata: { uid, resourceVersion }, status: { conditions } };
      await client.mergePatch(componentReconcilers, { name: component }, patch, { signal, subresource: 'status' });
    } catch (error) {
      if (isConflict(error)) return retryConflict(error);
      if (!isNotFound(error)) throw error;
    }
    return done;
  }

  #conditions(component: string): ConditionUpdate<Condition>[] {
    const { registrations, breakers } = this.#deps;
    const { accepted, cyclic, reachable } = registrationConditions;
    const problem = registrations.problem(component);
    const cycle = registrations.cycle(component);
    const failure = breakers.problem(component);
    return [
      problem === undefined
        ? { type: accepted, status: 'True', reason: 'Accepted', message: '' }
        : { type: accepted, status: 'False', reason: 'Refused', message: problem },
      cycle === undefined
        ? { type: cyclic, status: 'False', reason: 'NoCircle', message: '' }
        : {
            type: cyclic,
            status: 'True',
            // Usually through other components: direct reads of own outputs are refused.
            reason: 'ReadsItself',
            message: `outputs of the component affect its own inputs: ${[...cycle, cycle[0]].join(' → ')}; this is allowed; check that the values become stable, or these components run forever`,
          },
      failure === undefined
        ? { type: reachable, status: 'True', reason: 'Answering', message: '' }
        : { type: reachable, status: 'False', reason: 'NotAnswering', message: endpointMessage(component, failure) },
    ];
  }
}

/** Later calls may fail for another cause, which only their runs show. */
function endpointMessage(component: string, { message, atMs }: OpenedBreaker): string {
  const found = `the endpoint accepts no calls; the circuit breaker opened at ${formatTime(atMs)}: ${message}`;
  const next = 'the server calls it again for the next run that is due, at most once in 1 to 30 s';
  const latest = `kubectl get reconcileruns -A -o wide -l ${componentLabel}=${component}`;
  return `${found}; ${next}; for the latest cause, see MESSAGE of: ${latest}`;
}
