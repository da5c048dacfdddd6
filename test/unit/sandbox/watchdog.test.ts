import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { containersFolder } from '../../../sandbox/layout.ts';
import { until } from '../../../sandbox/wait.ts';
import { Watchdog } from '../../../sandbox/watchdog.ts';

const soon = { timeoutMs: 5000 };

describe('sandbox watchdog', () => {
  let folder: string;
  const sleepers: ChildProcess[] = [];
  const sleeper = (home = folder): ChildProcess => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore', env: { PATH: process.env['PATH'], HOME: home } });
    sleepers.push(child);
    return child;
  };

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'watchdog-'));
    await mkdir(containersFolder(folder));
  });
  afterEach(async () => {
    for (const child of sleepers.splice(0)) child.kill('SIGKILL');
    for (const each of [folder, containersFolder(folder)]) await rm(each, { recursive: true, force: true });
  });

  it('kills the watched processes and removes both folders if its input ends without done', async () => {
    const [first, forgotten, last] = [sleeper(), sleeper(), sleeper()];
    const watchdog = new Watchdog(folder);
    for (const child of [first, forgotten, last]) watchdog.watch(child.pid ?? 0);
    watchdog.forget(forgotten.pid ?? 0);
    watchdog.abandon();
    await until('the folders to go', () => !existsSync(folder) && !existsSync(containersFolder(folder)), soon);
    await until('both to end', () => first.signalCode === 'SIGKILL' && last.signalCode === 'SIGKILL', soon);
    assert.equal(forgotten.signalCode, null);
  });

  for (const way of ['done', 'abandon'] as const) {
    it(`removes its control groups after ${way}, with the groups below`, async () => {
      const groups = [join(folder, 'memory'), join(folder, 'pids')];
      for (const group of groups) await mkdir(join(group, 'pods', 'pod'), { recursive: true });
      const watchdog = new Watchdog(folder, groups);
      await watchdog[way]();
      await until('the groups to go', () => groups.every((group) => !existsSync(group)), soon);
    });
  }

  it('changes no watched process and no folder after done', async () => {
    const child = sleeper();
    const watchdog = new Watchdog(folder);
    watchdog.watch(child.pid ?? 0);
    await watchdog.done();
    assert.ok(existsSync(folder) && existsSync(containersFolder(folder)));
    assert.equal(child.signalCode, null);
  });

  for (const way of ['done', 'abandon'] as const) {
    it(`kills the processes of its containers after ${way}, and those of no other plane`, async () => {
      const ours = sleeper(join(containersFolder(folder), 'default', 'shell', 'main'));
      const others = sleeper(join(containersFolder(`${folder}1`), 'default', 'shell', 'main'));
      const watchdog = new Watchdog(folder);
      await watchdog[way]();
      await until('it to end', () => ours.signalCode === 'SIGKILL', soon);
      if (way === 'abandon') await until('the folder to go', () => !existsSync(folder), soon);
      assert.equal(others.signalCode, null);
    });
  }
});
