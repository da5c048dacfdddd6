import { maxEntryBytes } from '../../../src/api/inventory/names.ts';
import { isEndless } from './random-components.ts';
import type { ScheduleStage } from './schedule-stage.ts';
import { valueFor } from './simulated-component.ts';
import type { SimEntry } from './simulated-entry.ts';
import type { SimulatedMothership } from './simulated-mothership.ts';
import type { SimComponent, SimulatedWorld } from './simulated-world.ts';
import { hold } from './violation.ts';

const windowMs = 600_000;
/** In ten minutes, of a key that is slowed down. */
const mostRuns = 40;

/** What has to be so when nothing has happened for long. */
export function checkEnd(world: SimulatedWorld, { leader }: ScheduleStage): void {
  hold(leader !== undefined, 'schedule', () => 'nobody leads');
  for (const entry of world.entries.values()) {
    hold(!entry.deleting, 'R33: what is deleted goes', () => JSON.stringify([entry.facts, statesOf(leader, entry)]));
    for (const component of world.components.values()) {
      if (isEndless(component)) checkEndless(world, leader, entry, component);
      else if (isRunnable(entry, component)) checkKey(world, leader, entry, component);
    }
  }
  for (const { record } of world.records.values()) {
    hold(world.entries.has(record.entry.uid), 'I19: nothing is left of what is gone', () => JSON.stringify(record));
  }
  for (const { name } of world.components.values()) {
    const own = [...leader.loops.values()].filter((loop) => loop.component.name === name && !loop.isAtRest);
    const running = leader.limits.running(name);
    hold(running <= own.length, 'I13: no slot is held for nothing', () => `${running} of ${name}`);
  }
}

function checkKey(world: SimulatedWorld, leader: SimulatedMothership, entry: SimEntry, component: SimComponent): void {
  const { name } = component;
  const { ref, facts } = entry;
  const key = `${ref.uid}/${name}`;
  const record = world.records.get(key)?.record;
  const loop = leader.loops.get(key);
  const at = (): string => `${name} ${JSON.stringify([facts, record, loop?.state])}`;
  hold(record !== undefined, 'I8: no trigger is lost', at);
  const last = record.lastOutcome;
  const isCutOff = isWithoutCluster(world, entry, component);
  if (!isCutOff) {
    hold(record.phase === 'Idle', 'I2: whatever ended is ended', at);
    const digest = leader.digest(entry, component);
    hold(record.inputsDigest === digest, 'I10, I11: the last run was about the inputs of now', at);
    hold(loop?.state.row?.observedInputs === digest, 'I11: its row is about the inputs of now', at);
  }
  const isReady = component.needs.every((other) => facts.outputs[other] !== undefined);
  if (!isReady) hold(last?.outcome === 'NotReady', 'I11: what misses an input waits for it', at);
  else if (world.away.has(ref.uid) && isCutOff)
    hold(last?.outcome === 'Retry', 'I14: what misses its cluster tries again', at);
  // It may not have noticed.
  else if (isCutOff) hold(last?.outcome !== 'Failed', 'I17: rotation is no failure', at);
  else hold(last?.outcome === 'Done', 'I11, I14: what can be done is done', at);
  // What failed for good waits for other inputs instead.
  if (loop?.remoteAt === undefined || world.isSevere) return;
  const calledAt = world.dispatched.get(`${key}#${last?.seq}`) ?? 0;
  hold(calledAt > loop.remoteAt, 'I8: a remote event that was taken is followed by a run', at);
}

/** Two that never agree are slowed down, and somebody is told. */
function checkEndless(
  world: SimulatedWorld,
  leader: SimulatedMothership,
  entry: SimEntry,
  component: SimComponent,
): void {
  const key = `${entry.ref.uid}/${component.name}`;
  const from = world.time.now - windowMs;
  let runs = 0;
  for (let index = world.log.length - 1; (world.log[index]?.at ?? 0) > from; index -= 1) {
    if (world.log[index]?.key === key) runs += 1;
  }
  hold(runs <= mostRuns, 'I21: runs are bounded', () => `${runs} of ${key} in ten minutes`);
  const isOn = [...world.components.values()].filter(isEndless).every((one) => isRunnable(entry, one));
  const { livelock } = leader.loops.get(key)?.state.row ?? {};
  // Inputs that changed and were back before anybody saw it: only time goes on then.
  hold(
    !isOn || runs === 0 || livelock !== undefined,
    'I21: a livelock is told',
    () => `${runs} of ${key} in ten minutes`,
  );
}

/** The first component whose output is not what its inputs make it. */
export function wrongOutput(world: SimulatedWorld): string | undefined {
  for (const entry of world.entries.values()) {
    for (const component of world.components.values()) {
      if (isEndless(component) || !isRunnable(entry, component) || isWithoutCluster(world, entry, component)) continue;
      const { outputs, spec } = entry.facts;
      if (component.needs.some((other) => outputs[other] === undefined)) continue;
      const { uid } = entry.ref;
      const value = component.makesKubeconfig ? world.kubeconfigVersion(uid) : valueFor(component, entry.facts);
      if (outputs[component.name]?.value !== value) return JSON.stringify([uid, component.name, value, spec, outputs]);
    }
  }
  return undefined;
}

const isRunnable = ({ facts }: SimEntry, { name }: SimComponent): boolean =>
  facts.bytes <= maxEntryBytes && !facts.disabled.includes(name);

/** Whoever makes its kubeconfig may be disabled, or the cluster away. */
function isWithoutCluster(world: SimulatedWorld, { ref, facts }: SimEntry, component: SimComponent): boolean {
  const { usesKubeconfigOf: maker } = component;
  if (maker === undefined) return false;
  const version = facts.outputs[maker]?.value;
  return world.away.has(ref.uid) || (version !== undefined && !world.acceptsKubeconfig(ref.uid, version));
}

const statesOf = ({ loops }: SimulatedMothership, { ref }: SimEntry): unknown =>
  [...loops.values()].flatMap((loop) => (loop.uid === ref.uid ? [[loop.key, loop.state]] : []));
