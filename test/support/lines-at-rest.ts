import { setTimeout as sleep } from 'node:timers/promises';

interface Line {
  readonly user?: { readonly username?: string };
  readonly verb?: string;
  readonly stage?: string;
  readonly objectRef?: { readonly resource?: string };
}

const settleMs = 20_000;
const measuredMs = 60_000;
/** The shortest time after which a replica opens a healthy watch anew, seconds. Each is two lines, for its start and for its end. */
const watchSeconds = 300;

/**
 * Measures for a minute what the users write into the audit log of an API server, RequestReceived omitted. A minute contains the end of few
 * watches, so those that are open count with their share. `log`: reads the whole log.
 */
export async function linesAtRest(log: () => Promise<string>, isMeasured: (user: string) => boolean) {
  const read = async (): Promise<Line[]> => {
    const text = await log();
    const lines = text.slice(0, text.lastIndexOf('\n')).split('\n');
    return lines.map((line): Line => JSON.parse(line)).filter(({ user }) => isMeasured(user?.username ?? ''));
  };
  await sleep(settleMs);
  const before = await read();
  await sleep(measuredMs);
  const during = (await read()).slice(before.length);
  const stages = (name: string): number =>
    before.filter(({ verb, stage }) => verb === 'watch' && stage === name).length;
  const open = stages('ResponseStarted') - stages('ResponseComplete');
  const counts = new Map<string, number>();
  for (const { verb, objectRef } of during) {
    const call = `${verb} ${objectRef?.resource}`;
    counts.set(call, (counts.get(call) ?? 0) + 1);
  }
  const others = during.filter(({ verb }) => verb !== 'watch').length / (measuredMs / 1000);
  const watches = (open * 2) / watchSeconds;
  return {
    linesASecond: others + watches,
    counts,
    summary: `${others.toFixed(2)} lines a second, and ${watches.toFixed(2)} of ${open} watches: ${JSON.stringify([...counts])}`,
  };
}
