import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIP } from 'node:net';
import {
  bitString,
  booleanTrue,
  explicit,
  implicit,
  integer,
  octetString,
  oid,
  sequence,
  setOf,
  time,
  utf8String,
} from './der.ts';

/** Both PEM. */
export interface Identity {
  readonly certificate: string;
  readonly key: string;
}

/** With its key. */
export interface Authority extends Identity {
  readonly commonName: string;
}

/** Its user, groups (O), and the names that it serves. */
export interface Subject {
  readonly commonName: string;
  readonly groups?: readonly string[];
  /** DNS names, IPv4 addresses, and `::1`. With any, it is a server certificate. */
  readonly serves?: readonly string[];
}

/** Epoch ms, cut to whole seconds. */
export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Of RFC 5280, X.520, and RFC 5758. */
const oids = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
};

const ecdsaWithSha256 = sequence(oid(oids.ecdsaWithSha256));

/** Self-signed (EC P-256); may sign only leaf certificates. */
export function createAuthority(commonName: string, validity: Validity, keys = keyPair()): Authority {
  const { publicKey, privateKey } = keys;
  const extensions = [
    extension(oids.basicConstraints, sequence(booleanTrue, integer([0])), true),
    // digitalSignature, keyCertSign, cRLSign
    extension(oids.keyUsage, bitString(Buffer.from([0x86]), 1), true),
  ];
  const issuer = { commonName, key: privateKey };
  const certificate = certify({ subject: { commonName }, key: publicKey, issuer, validity, extensions });
  return { commonName, certificate, key: pemKey(privateKey) };
}

/** EC P-256. A server certificate if the subject serves names, else a client certificate. */
export function issue(authority: Authority, subject: Subject, validity: Validity): Identity {
  const { publicKey, privateKey } = keyPair();
  const serves = subject.serves ?? [];
  const purpose = serves.length > 0 ? oids.serverAuth : oids.clientAuth;
  const extensions = [
    // digitalSignature
    extension(oids.keyUsage, bitString(Buffer.from([0x80]), 7), true),
    extension(oids.extKeyUsage, sequence(oid(purpose))),
    ...(serves.length > 0 ? [extension(oids.subjectAltName, sequence(...serves.map(generalName)))] : []),
  ];
  const issuer = { commonName: authority.commonName, key: createPrivateKey(authority.key) };
  const certificate = certify({ subject, key: publicKey, issuer, validity, extensions });
  return { certificate, key: pemKey(privateKey) };
}

interface ToBeSigned {
  readonly subject: Subject;
  readonly key: KeyObject;
  readonly issuer: { readonly commonName: string; readonly key: KeyObject };
  readonly validity: Validity;
  readonly extensions: readonly Buffer[];
}

function certify({ subject, key, issuer, validity, extensions }: ToBeSigned): string {
  const body = sequence(
    // Version 3.
    explicit(0, integer([2])),
    // 0x40 keeps the serial number positive, without a leading zero byte.
    integer([0x40, ...randomBytes(15)]),
    ecdsaWithSha256,
    name(issuer.commonName),
    sequence(time(validity.fromMs), time(validity.untilMs)),
    name(subject.commonName, subject.groups),
    spki(key),
    explicit(
      3,
      sequence(
        ...extensions,
        extension(oids.subjectKeyIdentifier, octetString(keyIdentifier(key))),
        extension(oids.authorityKeyIdentifier, sequence(implicit(0, keyIdentifier(createPublicKey(issuer.key))))),
      ),
    ),
  );
  return pem('CERTIFICATE', sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, issuer.key))));
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

// Verifiers compare it in the authority and what it signed; the value is arbitrary.
function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha256').update(spki(key)).digest().subarray(0, 20);
}

function name(commonName: string, organizations: readonly string[] = []): Buffer {
  const attribute = (type: string, value: string): Buffer => setOf(sequence(oid(type), utf8String(value)));
  return sequence(
    ...organizations.map((group) => attribute(oids.organization, group)),
    attribute(oids.commonName, commonName),
  );
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [booleanTrue] : []), octetString(value));
}

function generalName(host: string): Buffer {
  if (isIP(host) === 4) return implicit(7, Buffer.from(host.split('.').map(Number)));
  if (host === '::1') return implicit(7, Buffer.from([...new Array<number>(15).fill(0), 1]));
  return implicit(2, Buffer.from(host, 'ascii'));
}

function keyPair(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function pemKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
