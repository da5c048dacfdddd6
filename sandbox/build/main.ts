import { ensureBinaries, ensureGoPrograms } from './binaries.ts';

/** Builds the programs of the control plane, and the S3 server, that the cache lacks, so that tests do not wait for them. */
const onProgress = (line: string): void => console.error(line);
await ensureBinaries({ onProgress });
await ensureGoPrograms(['versitygw'], { onProgress });
