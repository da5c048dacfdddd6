import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../../sandbox/wait.ts';
import { Watchdog } from '../../../sandbox/watchdog.ts';

describe('sandbox watchdog', () => {
  let folder: string;
  const sleepers: ChildProcess[] = [];
  const sleeper = (): ChildProcess => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    sleepers.push(child);
    return child;
  };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'watchdog-'));
  });
  afterEach(async () => {
    for (const child of sleepers.splice(0)) child.kill('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  it('kills the watched processes and removes the folder if its input ends without done', async () => {
    const [first, forgotten, last] = [sleeper(), sleeper(), sleeper()];
    const watchdog = new Watchdog(folder);
    for (const child of [first, forgotten, last]) watchdog.watch(child.pid ?? 0);
    watchdog.forget(forgotten.pid ?? 0);
    watchdog.abandon();
    await until('the folder to go', () => !existsSync(folder), { timeoutMs: 5000 });
    await until('both to end', () => first.signalCode === 'SIGKILL' && last.signalCode === 'SIGKILL', {
      timeoutMs: 5000,
    });
    assert.equal(forgotten.signalCode, null);
  });

  it('changes nothing after done', async () => {
    const child = sleeper();
    const watchdog = new Watchdog(folder);
    watchdog.watch(child.pid ?? 0);
    await watchdog.done();
    assert.ok(existsSync(folder));
    assert.equal(child.signalCode, null);
  });
});
