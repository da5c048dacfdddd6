import { gunzipSync, inflateRawSync } from 'node:zlib';

const tarBlock = 512;

/** Reads one file from a .tgz; throws if it is absent. Supports the part of ustar that `npm pack` writes. */
export function readTarEntry(tgz: Buffer, path: string): Buffer {
  const tar = gunzipSync(tgz);
  let offset = 0;
  while (offset + tarBlock <= tar.length) {
    const header = tar.subarray(offset, offset + tarBlock);
    const name = text(header, 0, 100);
    if (name === '') break;
    const prefix = text(header, 345, 155);
    const size = Number.parseInt(text(header, 124, 12).trim() || '0', 8);
    const start = offset + tarBlock;
    if ((prefix ? `${prefix}/${name}` : name) === path) return tar.subarray(start, start + size);
    offset = start + Math.ceil(size / tarBlock) * tarBlock;
  }
  throw new Error(`the archive has no file ${path}`);
}

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const stored = 0;
const deflated = 8;

/** Reads one file from a .zip (stored or deflated, no zip64); throws if it is absent or damaged. */
export function readZipEntry(zip: Buffer, path: string): Buffer {
  const end = zip.lastIndexOf(le32(endOfDirectory));
  if (end < 0) throw new Error('not a zip archive: it has no central directory');
  const count = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  for (let index = 0; index < count; index += 1) {
    if (zip.readUInt32LE(at) !== directoryEntry) throw new Error('the central directory of the zip is damaged');
    const nameLength = zip.readUInt16LE(at + 28);
    const name = zip.toString('utf8', at + 46, at + 46 + nameLength);
    if (name === path) return unpack(zip, at, path);
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new Error(`the archive has no file ${path}`);
}

function unpack(zip: Buffer, entry: number, path: string): Buffer {
  const method = zip.readUInt16LE(entry + 10);
  const packedSize = zip.readUInt32LE(entry + 20);
  const size = zip.readUInt32LE(entry + 24);
  const local = zip.readUInt32LE(entry + 42);
  // The lengths in the local header may differ from those in the directory.
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  const packed = zip.subarray(start, start + packedSize);
  if (method !== stored && method !== deflated) throw new Error(`${path} is packed with unknown method ${method}`);
  const content = method === stored ? packed : inflateRawSync(packed);
  if (content.length !== size) throw new Error(`${path} unpacks to ${content.length} bytes instead of ${size}`);
  return content;
}

function le32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function text(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? length : end);
}
