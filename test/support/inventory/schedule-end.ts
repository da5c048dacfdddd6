import { forceAnnotation, maxEntryBytes } from '../../../src/api/inventory/names.ts';
import { digestInputs } from '../../../src/inventory/core/digest.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { keyText } from '../../../src/inventory/key.ts';
import { isEndless } from './random-components.ts';
import type { ScheduleStage } from './schedule-stage.ts';
import { valueFor } from './simulated-component.ts';
import type { SimulatedManager } from './simulated-manager.ts';
import type { SimComponent } from './simulation.ts';
import { assertInvariant } from './violation.ts';
import { outputsOf, type SimulatedWorld } from './world.ts';

const windowMs = 600_000;
/** Maximum number of runs in ten minutes during a livelock. */
const mostRuns = 40;

/** Checks deletions before waiting components would be called by their interval: they must be triggered. */
export function checkDeleted(world: SimulatedWorld): void {
  const left = world.inventory.entries().find(({ deleting }) => deleting);
  assertInvariant(left === undefined, 'R33: what is deleted goes soon', () =>
    JSON.stringify([left, left && recordsOf(world, left)]),
  );
}

/** Checks the invariants after a long quiet period. */
export function checkEnd(world: SimulatedWorld, { leader, remotes }: ScheduleStage): void {
  assertInvariant(leader !== undefined, 'schedule', () => 'there is no leader');
  const uids = new Set<string>();
  for (const entry of world.inventory.entries()) {
    uids.add(entry.ref.uid);
    assertInvariant(!entry.deleting, 'R33: what is deleted goes', () =>
      JSON.stringify([entry, recordsOf(world, entry)]),
    );
    for (const component of world.components.values()) {
      if (isEndless(component)) checkEndless(world, entry, component);
      else if (isRunnable(entry, component)) checkKey(world, leader, remotes, entry, component);
    }
  }
  for (const { record } of world.inventory.records()) {
    assertInvariant(uids.has(record.entry.uid), 'I19: no record of a deleted entry is left', () =>
      JSON.stringify(record),
    );
  }
}

function checkKey(
  world: SimulatedWorld,
  leader: SimulatedManager,
  remotes: ScheduleStage['remotes'],
  entry: Entry,
  component: SimComponent,
): void {
  const { name } = component;
  const { ref } = entry;
  const key = { entryUid: ref.uid, component: name };
  const record = world.inventory.record(key)?.record;
  const at = (): string => `${name} ${JSON.stringify([entry, record])}`;
  assertInvariant(record !== undefined, 'I8: no trigger is lost', at);
  const last = record.lastOutcome;
  const isCutOff = isWithoutCluster(world, entry, component);
  const outputs = outputsOf(entry);
  if (!isCutOff) {
    assertInvariant(record.phase === 'Idle', 'I2: no run stays active', at);
    const registration = leader.registration(name);
    assertInvariant(
      registration?.generation === world.registrations.get(name)?.generation,
      'I10: a relist repairs lost events',
      at,
    );
    const digest = registration && digestInputs(entry.content, registration, entry.annotations[forceAnnotation(name)]);
    assertInvariant(record.inputsDigest === digest, 'I10, I11: the last run used the current inputs', at);
    const row = entry.components.find((one) => one.name === name);
    assertInvariant(
      row?.observedInputs === record.inputsDigest,
      'I11: the component status belongs to the current inputs',
      at,
    );
  }
  const isReady = component.needs.every((other) => outputs[other] !== undefined);
  if (!isReady) assertInvariant(last?.outcome === 'NotReady', 'I11: a component with a missing input waits for it', at);
  else if (world.away.has(ref.uid) && isCutOff)
    assertInvariant(last?.outcome === 'Retry', 'I14: a component without its cluster retries', at);
  // The manager may not have noticed.
  else if (isCutOff) assertInvariant(last?.outcome !== 'Failed', 'I17: rotation is no failure', at);
  else assertInvariant(last?.outcome === 'Done', 'I11, I14, I20: every runnable component is Done', at);
  // A Failed component waits for changed inputs instead.
  const remote = remotes.get(keyText(key));
  if (remote?.by !== leader || world.isSevere) return;
  const calledAt = world.calls.orderOf(`${keyText(key)}#${last?.seq}`);
  assertInvariant(calledAt > remote.order, 'I8: an accepted remote event is followed by a run', at);
}

/** Components that never converge must be slowed down and reported. */
function checkEndless(world: SimulatedWorld, entry: Entry, component: SimComponent): void {
  const key = `${entry.ref.uid}/${component.name}`;
  const from = world.time.now - windowMs;
  let runs = 0;
  for (let index = world.log.length - 1; (world.log[index]?.at ?? 0) > from; index -= 1) {
    if (world.log[index]?.key === key) runs += 1;
  }
  const at = (): string => `${runs} of ${key} in ten minutes: ${JSON.stringify(entry.conditions)}`;
  assertInvariant(runs <= mostRuns, 'I21: runs are bounded', at);
  const isOn = [...world.components.values()].filter(isEndless).every((one) => isRunnable(entry, one));
  const livelock = entry.conditions.find(({ type }) => type === 'Livelock');
  // Inputs that changed and returned unobserved are repaired only by the interval.
  assertInvariant(!isOn || runs === 0 || livelock?.status === 'True', 'I21: a livelock is reported', at);
}

/** Runs every runnable key once more, sequentially if there are few slots. */
export async function checkSlots(world: SimulatedWorld, runFor: (ms: number) => Promise<void>): Promise<void> {
  const from = world.next();
  const keys = world.inventory
    .entries()
    .flatMap((entry) =>
      [...world.components.values()].flatMap((one) => (isRunnable(entry, one) ? [{ entry, one }] : [])),
    );
  for (const { entry, one } of keys) world.force(entry.ref.uid, one.name);
  await runFor(30_000);
  for (const { entry, one } of keys) {
    const key = { entryUid: entry.ref.uid, component: one.name };
    const record = world.inventory.record(key)?.record;
    const at = (): string => `${keyText(key)} ${JSON.stringify([record, recordsOf(world, entry)])}`;
    const calledAt = world.calls.orderOf(`${keyText(key)}#${record?.seq}`);
    if (!isEndless(one)) assertInvariant(calledAt > from, 'I13: no idle key keeps a slot', at);
  }
}

/** The first component whose output does not match its inputs. */
export function wrongOutput(world: SimulatedWorld): string | undefined {
  for (const entry of world.inventory.entries()) {
    for (const component of world.components.values()) {
      if (isEndless(component) || !isRunnable(entry, component) || isWithoutCluster(world, entry, component)) continue;
      const outputs = outputsOf(entry);
      if (component.needs.some((other) => outputs[other] === undefined)) continue;
      const { uid } = entry.ref;
      const value = component.makesKubeconfig ? world.kubeconfigVersion(uid) : valueFor(component, entry);
      if (outputs[component.name]?.value !== value) {
        return JSON.stringify([uid, component.name, value, entry.content, recordsOf(world, entry)]);
      }
    }
  }
  return undefined;
}

const isRunnable = ({ bytes, disabled }: Entry, { name }: SimComponent): boolean =>
  bytes <= maxEntryBytes && !disabled.has(name);

/** The kubeconfig's producer may be disabled, or the cluster unavailable. */
function isWithoutCluster(world: SimulatedWorld, entry: Entry, component: SimComponent): boolean {
  const { usesKubeconfigOf: maker } = component;
  if (maker === undefined) return false;
  const { uid } = entry.ref;
  const version = outputsOf(entry)[maker]?.value;
  return world.away.has(uid) || (version !== undefined && !world.acceptsKubeconfig(uid, version));
}

const recordsOf = ({ inventory }: SimulatedWorld, { ref }: Entry): unknown =>
  inventory.records().filter(({ record }) => record.entry.uid === ref.uid);
