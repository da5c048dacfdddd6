import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { oid, sequence, time } from '../../../src/certificates/der.ts';
import { type Authority, createAuthority, issue } from '../../../src/certificates/x509.ts';

const validity = { fromMs: Date.UTC(2026, 0, 1), untilMs: Date.UTC(2060, 5, 7, 8, 9, 10) };

describe('DER', () => {
  const times: [string, number, string][] = [
    ['UTCTime until 2049', Date.UTC(2049, 11, 31, 23, 59, 59, 999), '170d3439313233313233353935395a'],
    ['GeneralizedTime from 2050 on', Date.UTC(2050, 0, 1), '180f32303530303130313030303030305a'],
  ];
  for (const [title, instant, expected] of times) {
    it(`writes ${title}`, () => assert.equal(time(instant).toString('hex'), expected));
  }

  const ids: [string, string][] = [
    ['2.5.4.3', '0603550403'],
    ['1.2.840.10045.4.3.2', '06082a8648ce3d040302'],
    ['1.3.6.1.5.5.7.3.1', '06082b06010505070301'],
  ];
  for (const [dotted, expected] of ids) {
    it(`writes the identifier ${dotted}`, () => assert.equal(oid(dotted).toString('hex'), expected));
  }

  const lengths: [number, string][] = [
    [0, '3000'],
    [127, '307f'],
    [128, '308180'],
    [255, '3081ff'],
    [256, '30820100'],
    [65535, '3082ffff'],
  ];
  for (const [length, head] of lengths) {
    it(`writes a length of ${length}`, () => {
      const written = sequence(Buffer.alloc(length));
      assert.equal(written.toString('hex').slice(0, head.length), head);
      assert.equal(written.length, head.length / 2 + length);
    });
  }
  it('rejects a content of more than 65,535 bytes', () => {
    assert.throws(() => sequence(Buffer.alloc(65_536)), RangeError);
  });
});

describe('X.509', () => {
  const authority = createAuthority('authority', validity);
  const leafOf = (signer: Authority): ReturnType<typeof issue> =>
    issue(signer, { commonName: 'leaf', serves: ['a.b.svc', '127.0.0.1'] }, validity);

  it('gives certificates the requested validity, to the second', () => {
    for (const { certificate } of [authority, leafOf(authority)]) {
      const { validFrom, validTo } = new X509Certificate(certificate);
      assert.deepEqual([Date.parse(validFrom), Date.parse(validTo)], [validity.fromMs, validity.untilMs]);
    }
  });

  it('gives every certificate a unique serial number', () => {
    const serials = [authority, leafOf(authority), leafOf(authority)].map(
      ({ certificate }) => new X509Certificate(certificate).serialNumber,
    );
    assert.equal(new Set(serials).size, 3);
  });

  const handshake = async (served: ReturnType<typeof issue>, trusted: string, servername: string): Promise<string> => {
    const server = createServer({ cert: served.certificate, key: served.key });
    // A rejection by the client is an error on the server side as well.
    server.on('tlsClientError', () => {});
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const client: TLSSocket = connect({ port, host: '127.0.0.1', ca: trusted, servername });
    try {
      await once(client, 'secureConnect');
      return 'trusted';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? '';
    } finally {
      client.destroy();
      server.close();
    }
  };

  it('is trusted by clients that trust the authority, alone or in a bundle, only for its names', async () => {
    const other = createAuthority('authority', validity);
    const leaf = leafOf(authority);
    assert.equal(await handshake(leaf, authority.certificate, 'a.b.svc'), 'trusted');
    assert.equal(await handshake(leaf, other.certificate + authority.certificate, 'a.b.svc'), 'trusted');
    assert.notEqual(await handshake(leaf, other.certificate, 'a.b.svc'), 'trusted');
    assert.equal(await handshake(leaf, authority.certificate, 'c.b.svc'), 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('does not allow a leaf to sign', async () => {
    const leaf = leafOf(authority);
    const beyond = leafOf({ ...leaf, commonName: 'leaf' });
    assert.notEqual(await handshake(beyond, authority.certificate + leaf.certificate, 'a.b.svc'), 'trusted');
  });
});
