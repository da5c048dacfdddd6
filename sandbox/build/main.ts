import { ensureBinaries } from './binaries.ts';

/** Builds the control plane's programs where the cache has none, so that tests need not wait for them. */
await ensureBinaries({ onProgress: (line) => console.error(line) });
