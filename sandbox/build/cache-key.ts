import { createHash } from 'node:crypto';

export interface CacheInputs {
  /** Contents of every go.mod and go.sum, in a fixed order. */
  readonly moduleFiles: readonly string[];
  readonly flags: readonly string[];
  /** The output of `go version`. */
  readonly goVersion: string;
  /** For example `linux/x64`. */
  readonly platform: string;
}

/** Names the cache folder: the same inputs give the same 64 hex digits, any other input different ones. */
export function cacheKey(inputs: CacheInputs): string {
  const { moduleFiles, flags, goVersion, platform } = inputs;
  // JSON keeps the borders between the parts, so moving text from one part to the next changes the key.
  return createHash('sha256')
    .update(JSON.stringify([moduleFiles, flags, goVersion.trim(), platform]))
    .digest('hex');
}
