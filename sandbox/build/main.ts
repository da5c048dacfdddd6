import { ensureBinaries } from './binaries.ts';

/** Builds the programs of the control plane that the cache lacks, so that tests do not wait for them. */
await ensureBinaries({ onProgress: (line) => console.error(line) });
