import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

export const sha256Of = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex');

/** Writes a folder in the OCI image layout: blobs by digest, and an index that names one manifest. */
export class LayoutWriter {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'blobs/sha256'), { recursive: true });
  }

  add(mediaType: string, content: Buffer | object): Descriptor {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
    const hash = sha256Of(bytes);
    writeFileSync(join(this.folder, 'blobs/sha256', hash), bytes);
    return { mediaType, digest: `sha256:${hash}`, size: bytes.length };
  }

  /** Adds all blobs of another layout. */
  addAll(other: string): void {
    cpSync(join(other, 'blobs'), join(this.folder, 'blobs'), { recursive: true });
  }

  finish(manifest: Descriptor): void {
    writeFileSync(join(this.folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
    writeFileSync(join(this.folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  }
}

/** What the index of a layout names. */
export function manifestOf(layout: string): Descriptor {
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: Descriptor[] };
  const [manifest] = manifests;
  if (manifest === undefined || manifests.length > 1) throw new Error(`${layout} does not have exactly one manifest`);
  return manifest;
}

export const blobOf = (layout: string, { digest }: Descriptor): Buffer =>
  readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
