/** The user of Linux that owns no files. */
const OVERFLOW_USER = 65_534;

/** Runs `body` as a user without the rights of root, whom no permission of a folder stops. Other users run it as they are. */
export async function withoutRoot<T>(body: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return body();
  process.seteuid?.(OVERFLOW_USER);
  try {
    return await body();
  } finally {
    process.seteuid?.(0);
  }
}
