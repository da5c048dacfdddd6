import { randomUUID } from 'node:crypto';
import type { Clock } from '../../kit/clock.ts';
import { FolderSink } from './folder-sink.ts';
import type { S3Location } from './s3-bucket.ts';
import type { RecordingArchive, RecordingSink } from './sink.ts';

export async function openRecordings(
  place: { readonly folder: string } | S3Location | undefined,
  clock: Clock,
): Promise<(RecordingSink & RecordingArchive) | undefined> {
  if (place === undefined) return undefined;
  if ('folder' in place) return new FolderSink(place.folder);
  // Only for a bucket: the client of AWS takes a third of a second to load.
  const { S3Sink } = await import('./s3-sink.ts');
  return new S3Sink(place, clock);
}

/** Creates and deletes a recording, to know whether one can be stored. */
export async function tryToRecord(recordings: RecordingSink & RecordingArchive, namespace: string): Promise<void> {
  const name = { namespace, session: randomUUID() };
  const file = await recordings.create(name, Buffer.from('{}\n'));
  await file.close();
  await recordings.delete(name);
}
