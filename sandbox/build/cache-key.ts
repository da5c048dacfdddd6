import { createHash } from 'node:crypto';

export interface CacheInputs {
  /** Contents of go.mod, go.sum, and the sources of the module, in a fixed order. */
  readonly moduleFiles: readonly string[];
  readonly flags: readonly string[];
  /** The output of `go version`. */
  readonly goVersion: string;
  /** For example `linux/x64`. */
  readonly platform: string;
}

/** The name of the cache folder: 64 hex digits, the same for the same inputs only. */
export function cacheKey(inputs: CacheInputs): string {
  const { moduleFiles, flags, goVersion, platform } = inputs;
  // JSON separates the parts, so that moving text from one part to the next changes the key.
  return createHash('sha256')
    .update(JSON.stringify([moduleFiles, flags, goVersion.trim(), platform]))
    .digest('hex');
}
