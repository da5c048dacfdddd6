import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority, type Identity, issue } from '../../../sandbox/pki.ts';
import { FileCertificate } from '../../../src/admission/certificate.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { type Log, noLog } from '../../../src/observe/log.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const authority = createAuthority('test');
const identity = (days = 30): Identity => issue(authority, { commonName: 'webhook', serves: ['localhost'], days });

describe('the serving certificate', () => {
  let folder: string;
  let clock: SimulatedClock;
  let errors: string[];
  let log: Log;
  const certificates: FileCertificate[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-tls-'));
    clock = new SimulatedClock(Date.now());
    errors = [];
    log = { ...noLog, error: (message, fields) => errors.push(`${message}: ${fields?.['error']}`) };
  });
  afterEach(() => {
    for (const certificate of certificates.splice(0)) certificate.close();
    rmSync(folder, { recursive: true });
  });
  const write = ({ certificate, key }: Partial<Identity>): void => {
    if (certificate !== undefined) writeFileSync(join(folder, 'tls.crt'), certificate);
    if (key !== undefined) writeFileSync(join(folder, 'tls.key'), key);
  };
  const load = (overrides: { clock?: typeof systemClock } = {}): FileCertificate => {
    const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
    const certificate = new FileCertificate({ ...files, clock, log, ...overrides });
    certificates.push(certificate);
    return certificate;
  };

  it('is reloaded when the files change, even if only the poll sees it', async () => {
    write(identity());
    const certificate = load();
    const seen: string[] = [];
    certificate.start((pair) => seen.push(pair.cert.toString()));
    const renewed = identity(60);
    write(renewed);
    await clock.advance(10_000);
    assert.deepEqual(seen, [renewed.certificate]);
    await clock.advance(30_000);
    assert.equal(seen.length, 1);
  });

  it('is reloaded at once when the kubelet swaps the link beside it', async () => {
    const versions = ['..a', '..b'].map((name) => {
      const version = identity();
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'tls.crt'), version.certificate);
      writeFileSync(join(folder, name, 'tls.key'), version.key);
      return version;
    });
    symlinkSync('..a', join(folder, '..data'));
    symlinkSync('..data/tls.crt', join(folder, 'tls.crt'));
    symlinkSync('..data/tls.key', join(folder, 'tls.key'));
    const certificate = load({ clock: systemClock });
    const reloaded = new Promise<string>((resolve) => {
      certificate.start((pair) => resolve(pair.cert.toString()));
    });
    symlinkSync('..b', join(folder, '..data-new'));
    renameSync(join(folder, '..data-new'), join(folder, '..data'));
    assert.equal(await reloaded, versions[1]?.certificate);
  });

  const broken: [string, () => Partial<Identity>, RegExp][] = [
    ['half-written', () => ({ certificate: identity().certificate.slice(0, 200) }), /are not a usable serving cert/],
    ['empty', () => ({ certificate: '', key: '' }), /are not a usable serving cert/],
    ['mismatched', () => ({ key: identity().key }), /the key does not match the certificate/],
    ['expired', () => identity(-1), /the serving certificate expired at/],
  ];
  for (const [title, next, problem] of broken) {
    it(`stays as it is while the new pair is ${title}, with one line in the log`, async () => {
      const first = identity();
      write(first);
      const certificate = load();
      certificate.start(() => assert.fail('took a broken pair'));
      write(next());
      await clock.advance(60_000);
      assert.equal(certificate.current.cert.toString(), first.certificate);
      assert.equal(errors.length, 1);
      assert.match(errors[0] ?? '', problem);
    });
  }

  it('recovers when the other half of a pair arrives', async () => {
    write(identity());
    const certificate = load();
    const seen: string[] = [];
    certificate.start((pair) => seen.push(pair.key.toString()));
    const next = identity();
    write({ certificate: next.certificate });
    await clock.advance(10_000);
    assert.deepEqual(seen, []);
    write({ key: next.key });
    await clock.advance(10_000);
    assert.deepEqual(seen, [next.key]);
  });

  it('must be usable at the start', () => {
    assert.throws(() => load(), { code: 'BadCertificate', message: /cannot read .*tls.crt/ });
    write({ ...identity(), key: identity().key });
    assert.throws(() => load(), { code: 'BadCertificate' });
  });

  it('fails readiness only after it has expired', () => {
    write(identity(2));
    const certificate = load();
    clock.setWall(certificate.current.expiresAtMs - 1000);
    assert.equal(certificate.problem(), undefined);
    clock.setWall(certificate.current.expiresAtMs);
    assert.match(certificate.problem() ?? '', /^the serving certificate expired at 20/);
  });

  it('causes no error about new files when it expires unchanged', async () => {
    write(identity(2));
    const certificate = load();
    certificate.start(() => assert.fail('loaded an unchanged pair'));
    clock.setWall(certificate.current.expiresAtMs);
    await clock.advance(60_000);
    assert.deepEqual(errors, []);
    assert.match(certificate.problem() ?? '', /expired/);
  });

  it('is reported once as unusable while its files are missing', async () => {
    write(identity());
    load().start(() => assert.fail('loaded missing files'));
    rmSync(join(folder, 'tls.crt'));
    await clock.advance(60_000);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? '', /files are unusable; the certificate loaded before stays in use: cannot read/);
  });

  it('causes one warning in its last day', async () => {
    write(identity(2));
    const warnings: string[] = [];
    log = { ...log, warn: (message) => warnings.push(message) };
    const certificate = load();
    certificate.start(() => {});
    await clock.advance(20_000);
    assert.deepEqual(warnings, []);
    clock.setWall(certificate.current.expiresAtMs - 23 * 3600 * 1000);
    await clock.advance(20_000);
    assert.deepEqual(warnings, [
      'serving certificate expires within a day and was not renewed; check what renews its files',
    ]);
  });
});
