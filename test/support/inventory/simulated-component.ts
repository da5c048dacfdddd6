import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../src/api/inventory/fields.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText, runId } from '../../../src/inventory/key.ts';
import { valueAt } from '../../../src/kit/json-pointer.ts';
import type { SimComponent } from './simulation.ts';
import { hold } from './violation.ts';
import { outputsOf, type SimulatedWorld } from './world.ts';

/** A request, as a component has it. */
export interface SimRun extends ComponentKey {
  readonly seq: number;
  readonly operation: Operation;
  /** The latest that it has. */
  credential: string;
  readonly of: SimComponent;
}

const textOf = (run: SimRun): string => `${keyText(run)}#${run.seq}`;

/** The HTTP answer; never called when the connection is cut or the component hangs. */
export interface SimReply {
  outcome(outcome: Outcome): void;
  accepted(leaseMs: number): void;
  notAccepted(retryAfterMs: number | undefined): void;
  broken(code: 'NotJson'): void;
  crashed(): void;
}

/** One call, with whatever may go wrong in a component. */
export function callComponent(world: SimulatedWorld, run: SimRun, reply: SimReply): void {
  const { time } = world;
  const { of: component } = run;
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
        else if (world.fault(0.02)) reply.crashed();
        else {
          world.said(textOf(run), outcome.outcome);
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

/** 202: it reports, to whoever leads by then. */
function runOn(world: SimulatedWorld, run: SimRun, reply: SimReply, work: () => Outcome, takesMs: number): void {
  const { time } = world;
  reply.accepted(leaseMs);
  // It is never heard of again.
  if (world.fault(0.1)) return;
  const beat = async (): Promise<void> => {
    const { credential } = await deliver(world, run, { leaseMs });
    // The answer may get lost; the token before it is good for a while.
    if (credential !== undefined && !world.fault(0.1)) run.credential = credential;
  };
  const heartbeats = takesMs > heartbeatMs ? Math.floor(takesMs / heartbeatMs) : world.between(0, 2);
  for (let i = 1; i <= heartbeats; i += 1) {
    // Of some runs nothing is heard for long.
    if (!world.fault(0.1)) time.after((takesMs * i) / (heartbeats + 1) + 5, () => void beat());
  }
  time.after(takesMs + 10, () => {
    const outcome = work();
    if (world.fault(0.05)) return;
    world.said(textOf(run), outcome.outcome);
    const report = async (left: number): Promise<void> => {
      const { isTaken } = await deliver(world, run, { outcome });
      if (!isTaken && left > 0) time.after(2000, () => void report(left - 1));
    };
    const delayMs = world.fault(0.1) ? world.between(0, 60_000) : 0;
    time.after(delayMs, () => void report(4));
    // Twice, or once more and different.
    if (world.fault(0.1)) time.after(delayMs + world.between(0, 50), () => void deliver(world, run, { outcome }));
    if (world.isSevere && world.fault(0.1)) {
      world.said(textOf(run), 'Failed');
      time.after(delayMs + world.between(0, 50), () => void deliver(world, run, { outcome: { outcome: 'Failed' } }));
    }
  });
}

/** A report, by the credential that it has. Not taken: whoever leads did not answer that it was, or nobody leads. */
async function deliver(
  world: SimulatedWorld,
  run: SimRun,
  what: { readonly outcome: Outcome } | { readonly leaseMs: number },
): Promise<{ readonly isTaken: boolean; readonly credential: string | undefined }> {
  const { entryUid, component, seq, credential } = run;
  const id = runId(run, seq);
  const body =
    'outcome' in what ? { run: id, ...what.outcome } : { run: id, heartbeat: { leaseSeconds: what.leaseMs / 1000 } };
  const delivered = { isTaken: false, credential: undefined as string | undefined };
  for (const manager of world.managers) {
    if (manager.paused || world.isExpired(credential)) continue;
    if (world.fault(0.1)) {
      const forged = await manager.report({ entryUid, component, seq }, 'JTI=forged', body);
      world.check(() => hold(forged.status !== 200, 'I5: no report by a forged credential is taken', () => id));
    }
    const sentAt = world.time.now;
    const said = await manager.report({ entryUid, component, seq }, credential, body);
    world.count(`report ${said.status}`);
    if (said.status !== 200) continue;
    delivered.isTaken = true;
    if (!said.extension) continue;
    world.records.granted(textOf(run), manager, sentAt + said.extension.leaseSeconds * 1000);
    delivered.credential ??= said.extension.auth?.token.replace('token ', '');
  }
  return delivered;
}

/** It takes the kubeconfig as it is now; what is returned does the rest, with the entry as it is then. */
function begin(world: SimulatedWorld, run: SimRun): () => Outcome {
  const maker = run.of.usesKubeconfigOf;
  const entry = world.entry(run.entryUid);
  const kubeconfig = maker === undefined || !entry ? undefined : outputsOf(entry)[maker]?.value;
  return () => work(world, run, kubeconfig);
}

function work(world: SimulatedWorld, run: SimRun, kubeconfig: number | undefined): Outcome {
  const { entryUid: uid, of: component, seq, credential } = run;
  const { name, usesKubeconfigOf: maker } = component;
  const entry = world.entry(uid);
  if (!entry) return { outcome: 'Retry', message: 'no entry' };
  const outputs = outputsOf(entry);
  if (world.fault(0.05)) return { outcome: 'Retry', message: 'no luck' };
  if (run.operation === 'delete') return tearDown(world, name, entry);
  if (world.isSevere && world.fault(0.03)) return { outcome: 'Failed', message: 'no such region' };
  const missing = component.needs.filter((other) => outputs[other] === undefined);
  if (missing.length > 0) {
    return notReady(missing.map((other) => ({ path: `/status/outputs/${other}/value`, want: 'present' })));
  }
  if (world.fault(0.05)) return { outcome: 'Progressing', requeueAfterSeconds: world.between(1, 5) };
  if (maker !== undefined && world.away.has(uid)) return { outcome: 'Retry', message: 'the cluster does not answer' };
  if (maker !== undefined && !world.acceptsKubeconfig(uid, kubeconfig ?? outputs[maker]?.value ?? 0)) {
    world.refuse(textOf(run), 'I17: rotation is no failure');
    return { outcome: 'Retry', message: '401' };
  }
  const value = component.makesKubeconfig ? world.kubeconfigVersion(uid) : valueFor(component, entry);
  if (!component.patches) return { outcome: 'Done', outputs: { [name]: { value } } };
  const answer = world.patch(run, seq, credential, value);
  return answer === 'ok' ? { outcome: 'Done' } : { outcome: 'Retry', message: 'forbidden' };
}

/** Whoever needs its output goes first: some components name them, others ask that nobody reads it any more. */
function tearDown(world: SimulatedWorld, name: string, entry: Entry): Outcome {
  const outputs = outputsOf(entry);
  const readers = [...world.components.values()].filter(
    (other) => other.needs.includes(name) && outputs[other.name] !== undefined,
  );
  if (readers.length === 0) return { outcome: 'Deleted' };
  if (world.components.get(name)?.waitsForReaders)
    return notReady([{ path: `/status/outputs/${name}`, want: 'noReaders' }]);
  return notReady(readers.map((other) => ({ path: `/status/outputs/${other.name}`, want: 'absent' })));
}

/** What it makes of its inputs. */
export function valueFor(component: SimComponent, entry: Entry): number {
  const outputs = outputsOf(entry);
  const inputs = [...component.needs, ...component.likes].flatMap((other) => outputs[other]?.value ?? []);
  const fields = component.specFields.map((field) => Number(valueAt(entry.content, `/spec/cluster/${field}`) ?? 0));
  return component.value([...inputs, ...fields]);
}

function notReady(missing: readonly MissingInput[]): Outcome {
  const [first, ...rest] = missing;
  return first ? { outcome: 'NotReady', missing: [first, ...rest] } : { outcome: 'Retry' };
}
