import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../src/api/inventory/missing.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';

/** A request, as a component has it. */
export interface SimRun {
  readonly key: string;
  readonly uid: string;
  readonly seq: number;
  readonly operation: Operation;
  readonly credential: string;
  readonly component: SimComponent;
}

/** The HTTP answer; never called when the connection is cut or the component hangs. */
export interface SimReply {
  outcome(outcome: Outcome): void;
  accepted(leaseMs: number): void;
  notAccepted(retryAfterMs: number | undefined): void;
  broken(code: string): void;
}

/** Delivers to whoever leads; false: nobody took it. */
export type Deliver = (run: SimRun, credential: string, what: { outcome: Outcome } | { leaseMs: number }) => boolean;

/** Set by the schedule: where reports go. */
export const callbacks = new WeakMap<SimulatedWorld, Deliver>();

/** One call, with whatever may go wrong in a component. */
export function callComponent(world: SimulatedWorld, run: SimRun, reply: SimReply): void {
  const { time } = world;
  const { component } = run;
  if (component.isDown || world.fault(0.05)) {
    reply.notAccepted(world.chance(0.5) ? world.between(0, 3000) : undefined);
    return;
  }
  const takesMs = world.faulty && world.chance(0.1) ? component.durationMs * 20 : component.durationMs;
  const isAsync = component.isSynchronous !== true && world.chance(0.2);
  time.after(world.between(1, 5), () => {
    // It hangs, or died before it did anything.
    if (world.fault(0.05)) return;
    if (isAsync) runOn(world, run, reply, takesMs);
    else {
      time.after(takesMs, () => {
        const outcome = work(world, run);
        // It died after it wrote, and before it answered.
        if (world.fault(0.04)) return;
        if (world.fault(0.04)) reply.broken('NotJson');
        else {
          world.say(run.key, run.seq, outcome.outcome);
          reply.outcome(outcome);
        }
      });
    }
  });
}

const leaseMs = 20_000;

/** 202: it reports. */
function runOn(world: SimulatedWorld, run: SimRun, reply: SimReply, takesMs: number): void {
  const { time } = world;
  reply.accepted(leaseMs);
  const deliver = callbacks.get(world);
  if (!deliver) return;
  // It is never heard of again.
  if (world.fault(0.1)) return;
  const heartbeats = world.between(0, 2);
  for (let i = 1; i <= heartbeats; i += 1) {
    time.after((takesMs * i) / (heartbeats + 1) + 5, () => deliver(run, run.credential, { leaseMs }));
  }
  time.after(takesMs + 10, () => {
    const outcome = work(world, run);
    if (world.fault(0.05)) return;
    world.say(run.key, run.seq, outcome.outcome);
    const report = (left: number): void => {
      const isTaken = deliver(run, run.credential, { outcome });
      if (!isTaken && left > 0) time.after(2000, () => report(left - 1));
    };
    const delayMs = world.fault(0.1) ? world.between(0, 60_000) : 0;
    time.after(delayMs, () => report(4));
    // Twice, or once more and different.
    if (world.fault(0.1)) time.after(delayMs + world.between(0, 50), () => deliver(run, run.credential, { outcome }));
    if (world.isSevere && world.fault(0.1)) {
      world.say(run.key, run.seq, 'Failed');
      time.after(delayMs + world.between(0, 50), () =>
        deliver(run, run.credential, { outcome: { outcome: 'Failed' } }),
      );
    }
  });
}

/** What the component does: reads the entry as it is now, and writes. */
function work(world: SimulatedWorld, run: SimRun): Outcome {
  const { uid, component, key, credential } = run;
  const { name } = component.registration;
  const entry = world.entries.get(uid);
  if (!entry) return { outcome: 'Retry', message: 'no entry' };
  if (world.fault(0.05)) return { outcome: 'Retry', message: 'no luck' };
  if (run.operation === 'delete') {
    const readers = [...world.components.values()].filter(
      (other) => other.needs.includes(name) && entry.outputs[other.registration.name] !== undefined,
    );
    return readers.length === 0
      ? { outcome: 'Deleted' }
      : notReady(readers.map((other) => ({ path: `/status/outputs/${other.registration.name}`, want: 'absent' })));
  }
  if (world.isSevere && world.fault(0.03)) return { outcome: 'Failed', message: 'no such region' };
  const missing = component.needs.filter((other) => entry.outputs[other] === undefined);
  if (missing.length > 0) {
    return notReady(missing.map((other) => ({ path: `/status/outputs/${other}/value`, want: 'present' })));
  }
  if (world.fault(0.05)) return { outcome: 'Progressing', requeueAfterSeconds: world.between(0, 5) };
  const value = valueFor(component, entry);
  if (!component.patches) return { outcome: 'Done', outputs: { [name]: { value } } };
  const answer = world.patch(key, uid, name, credential, value);
  return answer === 'ok' ? { outcome: 'Done' } : { outcome: 'Retry', message: 'forbidden' };
}

/** What it makes of its inputs. */
export function valueFor(
  component: SimComponent,
  entry: {
    readonly outputs: Readonly<Record<string, { readonly value: number }>>;
    readonly spec: { readonly cluster: Readonly<Record<string, number>> };
  },
): number {
  const inputs = [...component.needs, ...component.likes].flatMap((other) => entry.outputs[other]?.value ?? []);
  const spec = component.specFields.map((field) => entry.spec.cluster[field] ?? 0);
  return component.value([...inputs, ...spec]);
}

function notReady(missing: readonly MissingInput[]): Outcome {
  const [first, ...rest] = missing;
  return first ? { outcome: 'NotReady', missing: [first, ...rest] } : { outcome: 'Retry' };
}
