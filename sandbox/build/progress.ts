export type OnProgress = (line: string) => void;

const tickMs = 15_000;

/** Reports the start of `what`, its elapsed time every 15 s, and its end. */
export async function reporting<T>(what: string, onProgress: OnProgress, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const elapsed = (): string => `${Math.round((performance.now() - began) / 1000)} s`;
  onProgress(`${what} ...`);
  const timer = setInterval(() => onProgress(`${what} ... ${elapsed()}`), tickMs);
  try {
    const result = await work();
    onProgress(`${what}: done in ${elapsed()}`);
    return result;
  } finally {
    clearInterval(timer);
  }
}
