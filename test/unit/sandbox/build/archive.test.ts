import assert from 'node:assert/strict';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { readTarEntry, readZipEntry } from '../../../../sandbox/build/archive.ts';

describe('sandbox archives', () => {
  const long = 'kubectl '.repeat(5000);

  describe('zip', () => {
    const zip = makeZip([
      { name: 'helm/', content: '', deflate: false },
      { name: 'helm/helm', content: 'stored', deflate: false },
      { name: 'kubectl/kubectl', content: long, deflate: true },
    ]);

    it('reads a stored file', () => assert.equal(readZipEntry(zip, 'helm/helm').toString(), 'stored'));
    it('reads a deflated file', () => assert.equal(readZipEntry(zip, 'kubectl/kubectl').toString(), long));
    it('names the missing file', () => assert.throws(() => readZipEntry(zip, 'etcd'), /no file etcd/));
    it('rejects a file that is not a zip archive', () =>
      assert.throws(() => readZipEntry(Buffer.from('PK'), 'x'), /not a zip/));
    it('rejects a file that unpacks to another size', () => {
      const damaged = makeZip([{ name: 'x', content: long, deflate: true, claimedSize: 7 }]);
      assert.throws(() => readZipEntry(damaged, 'x'), /unpacks to 40000 bytes instead of 7/);
    });
  });

  describe('tar', () => {
    const tgz = gzipSync(
      Buffer.concat([tarEntry('package/a', 'first'), tarEntry('package/b', long), Buffer.alloc(1024)]),
    );

    it('reads a file after another one', () => assert.equal(readTarEntry(tgz, 'package/b').toString(), long));
    it('names the missing file', () => assert.throws(() => readTarEntry(tgz, 'package/c'), /no file package\/c/));
  });
});

interface Entry {
  readonly name: string;
  readonly content: string;
  readonly deflate: boolean;
  readonly claimedSize?: number;
}

function makeZip(entries: readonly Entry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, deflate, claimedSize } of entries) {
    const packed = deflate ? deflateRawSync(content) : Buffer.from(content);
    // A local header with an extra field the directory does not have.
    const local = Buffer.alloc(30 + 4);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(name.length, 26);
    local.writeUInt16LE(4, 28);
    const file = Buffer.concat([local.subarray(0, 30), Buffer.from(name), local.subarray(30), packed]);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(deflate ? 8 : 0, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(claimedSize ?? content.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    files.push(file);
    directory.push(entry, Buffer.from(name));
    offset += file.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, ...directory, end]);
}

function tarEntry(name: string, content: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([header, body]);
}
