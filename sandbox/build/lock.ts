import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LockOptions {
  /** Called once with the id of the holder, if another process holds the lock. */
  readonly onWait?: (pid: number) => void;
  /** How often a waiting process checks again, milliseconds. */
  readonly pollMs?: number;
}

interface Holder {
  readonly pid: number;
  /** When the process started, in the kernel's unit; distinguishes the holder from a process that reuses its pid. */
  readonly started: string;
}

const released = 'released';

/**
 * Runs `work` while holding the lock named `path`; at most one process at a time does so.
 * If the holder has died, another process acquires the lock.
 *
 * The holder owns the file `path.N` with the highest number. Numbers only increase, so that only one of several processes that
 * find the same dead holder gets the next number, and no process can remove the file of a living one.
 */
export async function withLock<T>(path: string, work: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  const ticket = `${path}.${randomUUID()}`;
  await writeFile(ticket, JSON.stringify(describe(process.pid)));
  const held = await acquire(path, ticket, options).finally(() => rm(ticket, { force: true }));
  try {
    return await work();
  } finally {
    await writeFile(held, released);
  }
}

async function acquire(path: string, ticket: string, options: LockOptions): Promise<string> {
  let reported = false;
  for (;;) {
    const top = Math.max(0, ...(await numbers(path)));
    const holder = top === 0 ? undefined : await livingHolder(`${path}.${top}`);
    if (holder === undefined) {
      if (await claim(path, ticket, top + 1)) return `${path}.${top + 1}`;
      continue;
    }
    if (!reported) options.onWait?.(holder.pid);
    reported = true;
    await sleep(options.pollMs ?? 250);
  }
}

async function claim(path: string, ticket: string, number: number): Promise<boolean> {
  const file = `${path}.${number}`;
  try {
    // Atomic: never overwrites, and the file appears with its content.
    await link(ticket, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  const others = (await numbers(path)).filter((other) => other !== number);
  if (others.some((other) => other > number)) {
    // The listing of the folder is outdated: other processes have held and released the lock since.
    await rm(file, { force: true });
    return false;
  }
  await Promise.all(others.map((other) => rm(`${path}.${other}`, { force: true })));
  return true;
}

async function numbers(path: string): Promise<number[]> {
  const prefix = `${basename(path)}.`;
  const names = await readdir(dirname(path));
  const ends = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return ends.filter((end) => /^\d{1,15}$/.test(end)).map(Number);
}

async function livingHolder(file: string): Promise<Holder | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  const holder = text === undefined ? undefined : parse(text);
  return holder !== undefined && alive(holder) ? holder : undefined;
}

function alive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return describe(holder.pid).started === holder.started;
}

function describe(pid: number): Holder {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Field 22. The command in field 2 may contain spaces, so the count starts behind its parenthesis.
    return { pid, started: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '' };
  } catch {
    return { pid, started: '' };
  }
}

function parse(text: string): Holder | undefined {
  try {
    const value = JSON.parse(text) as Partial<Holder>;
    return typeof value.pid === 'number' ? { pid: value.pid, started: String(value.started) } : undefined;
  } catch {
    return undefined;
  }
}
