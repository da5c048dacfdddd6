import type { Outcome } from '../../../src/api/inventory/contract/outcome.ts';
import type { MissingInput } from '../../../src/api/inventory/fields.ts';
import type { Operation } from '../../../src/api/inventory/reconcile-run.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { type ComponentKey, keyText, runId } from '../../../src/inventory/key.ts';
import { valueAt } from '../../../src/kit/json-pointer.ts';
import type { SimComponent } from './simulation.ts';
import { assertInvariant } from './violation.ts';
import { outputsOf, type SimulatedWorld } from './world.ts';

/** A request, as the component receives it. */
export interface SimRun extends ComponentKey {
  readonly seq: number;
  readonly operation: Operation;
  /** The latest token of the component. */
  credential: string;
  readonly of: SimComponent;
}

const textOf = (run: SimRun): string => `${keyText(run)}#${run.seq}`;

/** The HTTP answer; never called if the connection is lost or the component hangs. */
export interface SimReply {
  outcome(outcome: Outcome): void;
  accepted(heartbeatTimeoutMs: number): void;
  notAccepted(retryAfterMs: number | undefined): void;
  broken(code: 'NotJson'): void;
  crashed(): void;
}

/** Simulates one call, with random faults of the component. */
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
    // The component hangs or crashed before any write.
    if (world.fault(0.05)) return;
    const work = begin(world, run);
    if (isAsync) runOn(world, run, reply, work, takesMs);
    else {
      time.after(takesMs, () => {
        const outcome = work();
        // The component crashed after its write and before its answer.
        if (world.fault(0.04)) return;
        if (world.fault(0.04)) reply.broken('NotJson');
        else if (world.fault(0.02)) reply.crashed();
        else {
          world.answered(textOf(run), outcome.outcome);
          reply.outcome(outcome);
        }
      });
    }
  });
}

const heartbeatTimeoutMs = 20_000;
/** Duration of a run that outlives its first token. */
const longMs = 45_000;
const heartbeatMs = 7000;

/** Answers 202, then reports to the leader at that time. */
function runOn(world: SimulatedWorld, run: SimRun, reply: SimReply, work: () => Outcome, takesMs: number): void {
  const { time } = world;
  reply.accepted(heartbeatTimeoutMs);
  // The component never reports again.
  if (world.fault(0.1)) return;
  const beat = async (): Promise<void> => {
    const { credential } = await deliver(world, run, { heartbeatTimeoutMs });
    // The answer may be lost; the previous token stays valid for a while.
    if (credential !== undefined && !world.fault(0.1)) run.credential = credential;
  };
  const heartbeats = takesMs > heartbeatMs ? Math.floor(takesMs / heartbeatMs) : world.between(0, 2);
  for (let i = 1; i <= heartbeats; i += 1) {
    // Some runs are silent for a long time.
    if (!world.fault(0.1)) time.after((takesMs * i) / (heartbeats + 1) + 5, () => void beat());
  }
  time.after(takesMs + 10, () => {
    const outcome = work();
    if (world.fault(0.05)) return;
    world.answered(textOf(run), outcome.outcome);
    const report = async (left: number): Promise<void> => {
      const { isTaken } = await deliver(world, run, { outcome });
      if (!isTaken && left > 0) time.after(2000, () => void report(left - 1));
    };
    const delayMs = world.fault(0.1) ? world.between(0, 60_000) : 0;
    time.after(delayMs, () => void report(4));
    // Reports twice, sometimes with a different outcome.
    if (world.fault(0.1)) time.after(delayMs + world.between(0, 50), () => void deliver(world, run, { outcome }));
    if (world.isSevere && world.fault(0.1)) {
      world.answered(textOf(run), 'Failed');
      time.after(delayMs + world.between(0, 50), () => void deliver(world, run, { outcome: { outcome: 'Failed' } }));
    }
  });
}

/** Sends a report with the present credential. It counts as not accepted without a leader or an answer. */
async function deliver(
  world: SimulatedWorld,
  run: SimRun,
  what: { readonly outcome: Outcome } | { readonly heartbeatTimeoutMs: number },
): Promise<{ readonly isTaken: boolean; readonly credential: string | undefined }> {
  const { entryUid, component, seq, credential } = run;
  const id = runId(run, seq);
  const body =
    'outcome' in what
      ? { run: id, ...what.outcome }
      : { run: id, heartbeat: { leaseSeconds: what.heartbeatTimeoutMs / 1000 } };
  const delivered = { isTaken: false, credential: undefined as string | undefined };
  for (const manager of world.managers) {
    if (manager.paused || world.isExpired(credential)) continue;
    if (world.fault(0.1)) {
      const forged = await manager.report({ entryUid, component, seq }, 'JTI=forged', body);
      world.check(() =>
        assertInvariant(forged.status !== 200, 'I5: no report with a forged credential is accepted', () => id),
      );
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

/** Reads the present kubeconfig. The returned function does the rest with the entry at that time. */
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

/** Readers of its output must be deleted first. Some components name them; others wait for noReaders. */
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

/** The output for the present inputs. */
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
