import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LockOptions {
  /** Called once when somebody else holds the lock, with that process's id. */
  readonly onWait?: (pid: number) => void;
  /** How often a waiting process looks again, in milliseconds. */
  readonly pollMs?: number;
}

interface Holder {
  readonly pid: number;
  /** When the process started, in the kernel's own unit; tells a reused pid from the holder. */
  readonly started: string;
}

/**
 * Runs `work` while holding the lock file at `path`; at most one process at a time does so.
 * The lock of a process that is gone is taken over.
 */
export async function withLock<T>(path: string, work: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  const ticket = `${path}.${randomUUID()}`;
  await writeFile(ticket, JSON.stringify(describe(process.pid)));
  try {
    await acquire(path, ticket, options);
  } finally {
    await rm(ticket, { force: true });
  }
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function acquire(path: string, ticket: string, options: LockOptions): Promise<void> {
  let told = false;
  while (!(await linked(ticket, path))) {
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const holder = parse(text);
    if (holder === undefined || !alive(holder)) {
      await takeAway(path, text);
      continue;
    }
    if (!told) options.onWait?.(holder.pid);
    told = true;
    await sleep(options.pollMs ?? 250);
  }
}

// Linking is atomic and never overwrites, and the file has its content from the first moment.
async function linked(ticket: string, path: string): Promise<boolean> {
  try {
    await link(ticket, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function takeAway(path: string, dead: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  // Another waiter may have taken the dead lock away just before: then this one is alive and goes back.
  if ((await readFile(aside, 'utf8')) !== dead) await linked(aside, path);
  await rm(aside, { force: true });
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
    // Field 22; the command in field 2 may hold spaces, so count from behind its bracket.
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
