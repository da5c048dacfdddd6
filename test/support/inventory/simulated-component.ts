import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../src/api/inventory/fields.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import type { EntryFacts } from './simulated-entry.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';

/** A request, as a component has it. */
export interface SimRun {
  readonly key: string;
  readonly uid: string;
  readonly seq: number;
  readonly operation: Operation;
  /** The latest that it has. */
  credential: string;
  readonly component: SimComponent;
}

/** The HTTP answer; never called when the connection is cut or the component hangs. */
export interface SimReply {
  outcome(outcome: Outcome): void;
  accepted(leaseMs: number): void;
  notAccepted(retryAfterMs: number | undefined): void;
  broken(code: string): void;
}

/** The answer to a report: `credential` is a new one. */
export type Delivered = { readonly isTaken: boolean; readonly credential?: string | undefined };

/** Delivers to whoever leads; not taken: by nobody. */
export type Deliver = (run: SimRun, what: { outcome: Outcome } | { leaseMs: number }) => Delivered;

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
  const isAsync = component.isSynchronous !== true && world.chance(0.2);
  const takesMs = component.durationMs * (world.fault(0.1) ? 20 : 1) + (isAsync && world.fault(0.1) ? longMs : 0);
  time.after(world.between(1, 5), () => {
    // It hangs, or died before it did anything.
    if (world.fault(0.05)) return;
    const work = begin(world, run);
    if (isAsync) runOn(world, run, reply, work, takesMs);
    else {
      time.after(takesMs, () => {
        const outcome = work();
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
/** Of a run that outlives its first token. */
const longMs = 45_000;
const heartbeatMs = 7000;

/** 202: it reports. */
function runOn(world: SimulatedWorld, run: SimRun, reply: SimReply, work: () => Outcome, takesMs: number): void {
  const { time } = world;
  reply.accepted(leaseMs);
  const deliver = callbacks.get(world);
  if (!deliver) return;
  // It is never heard of again.
  if (world.fault(0.1)) return;
  const beat = (): void => {
    const { credential } = deliver(run, { leaseMs });
    if (credential !== undefined) run.credential = credential;
  };
  const heartbeats = takesMs > heartbeatMs ? Math.floor(takesMs / heartbeatMs) : world.between(0, 2);
  for (let i = 1; i <= heartbeats; i += 1) {
    // Of some runs nothing is heard for long.
    if (!world.fault(0.1)) time.after((takesMs * i) / (heartbeats + 1) + 5, beat);
  }
  time.after(takesMs + 10, () => {
    const outcome = work();
    if (world.fault(0.05)) return;
    world.say(run.key, run.seq, outcome.outcome);
    const report = (left: number): void => {
      const { isTaken } = deliver(run, { outcome });
      if (!isTaken && left > 0) time.after(2000, () => report(left - 1));
    };
    const delayMs = world.fault(0.1) ? world.between(0, 60_000) : 0;
    time.after(delayMs, () => report(4));
    // Twice, or once more and different.
    if (world.fault(0.1)) time.after(delayMs + world.between(0, 50), () => deliver(run, { outcome }));
    if (world.isSevere && world.fault(0.1)) {
      world.say(run.key, run.seq, 'Failed');
      time.after(delayMs + world.between(0, 50), () => deliver(run, { outcome: { outcome: 'Failed' } }));
    }
  });
}

/** It takes the kubeconfig as it is now; what is returned does the rest, with the entry as it is then. */
function begin(world: SimulatedWorld, run: SimRun): () => Outcome {
  const { usesKubeconfigOf: maker } = run.component;
  const kubeconfig = maker === undefined ? undefined : world.entries.get(run.uid)?.facts.outputs[maker]?.value;
  return () => work(world, run, kubeconfig);
}

function work(world: SimulatedWorld, run: SimRun, kubeconfig: number | undefined): Outcome {
  const { uid, component, key, credential } = run;
  const { name, usesKubeconfigOf: maker } = component;
  const facts = world.entries.get(uid)?.facts;
  if (!facts) return { outcome: 'Retry', message: 'no entry' };
  if (world.fault(0.05)) return { outcome: 'Retry', message: 'no luck' };
  if (run.operation === 'delete') return tearDown(world, name, facts);
  if (world.isSevere && world.fault(0.03)) return { outcome: 'Failed', message: 'no such region' };
  const missing = component.needs.filter((other) => facts.outputs[other] === undefined);
  if (missing.length > 0) {
    return notReady(missing.map((other) => ({ path: `/status/outputs/${other}/value`, want: 'present' })));
  }
  if (world.fault(0.05)) return { outcome: 'Progressing', requeueAfterSeconds: world.between(0, 5) };
  if (maker !== undefined && world.away.has(uid)) return { outcome: 'Retry', message: 'the cluster does not answer' };
  if (maker !== undefined && !world.acceptsKubeconfig(uid, kubeconfig ?? facts.outputs[maker]?.value ?? 0)) {
    world.refuse(`${key}#${run.seq}`, 'I17: rotation is no failure');
    return { outcome: 'Retry', message: '401' };
  }
  const value = component.makesKubeconfig ? world.kubeconfigVersion(uid) : valueFor(component, facts);
  if (!component.patches) return { outcome: 'Done', outputs: { [name]: { value } } };
  const answer = world.patch(key, uid, name, credential, value);
  return answer === 'ok' ? { outcome: 'Done' } : { outcome: 'Retry', message: 'forbidden' };
}

/** Whoever needs its output goes first: some components name them, others ask that nobody reads it any more. */
function tearDown(world: SimulatedWorld, name: string, facts: EntryFacts): Outcome {
  const readers = [...world.components.values()].filter(
    (other) => other.needs.includes(name) && facts.outputs[other.name] !== undefined,
  );
  if (readers.length === 0) return { outcome: 'Deleted' };
  if (world.components.get(name)?.waitsForReaders)
    return notReady([{ path: `/status/outputs/${name}`, want: 'noReaders' }]);
  return notReady(readers.map((other) => ({ path: `/status/outputs/${other.name}`, want: 'absent' })));
}

/** What it makes of its inputs. */
export function valueFor(component: SimComponent, { outputs, spec }: Pick<EntryFacts, 'outputs' | 'spec'>): number {
  const inputs = [...component.needs, ...component.likes].flatMap((other) => outputs[other]?.value ?? []);
  const fields = component.specFields.map((field) => spec.cluster[field] ?? 0);
  return component.value([...inputs, ...fields]);
}

function notReady(missing: readonly MissingInput[]): Outcome {
  const [first, ...rest] = missing;
  return first ? { outcome: 'NotReady', missing: [first, ...rest] } : { outcome: 'Retry' };
}
