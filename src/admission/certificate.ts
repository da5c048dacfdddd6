import { X509Certificate } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Cancel, type Clock, formatTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { expiryProblem, type KeyPair, readKeyPair } from '../kit/key-pair.ts';
import type { Log } from '../observe/log.ts';

/** What an HTTPS server presents: of the webhooks, the gateway, or the inventory's callbacks. */
export interface ServingCertificate {
  readonly current: KeyPair;
  /**
   * Call it once. May begin with the current pair. If `listener` throws, the earlier pair stays.
   */
  start(listener: (pair: KeyPair) => void): void;
  close(): void;
}

interface CertificateOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Receives the first pair and each replacement. */
  readonly onServing?: (pair: KeyPair) => void;
}

/** Between checks of the files. */
const POLL_MS = 10_000;
/** One change causes several events, and an editor may have written only one of the two files. */
const SETTLE_MS = 100;
const DAY_MS = 24 * 3600 * 1000;

/**
 * The serving certificate from two files, reloaded when they change. Files that are missing or
 * unusable are logged, and the current pair stays.
 */
export class FileCertificate implements ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #watchers: FSWatcher[] = [];
  #current: KeyPair;
  #listener: (pair: KeyPair) => void = () => {};
  #cancelPoll: Cancel = () => {};
  #cancelSettle: Cancel = () => {};
  /** So that unusable files are logged once, not at every poll. */
  #loggedError: string | undefined;
  #warnedAbout: KeyPair | undefined;

  /** @throws CodedError `BadCertificate` if the pair is unusable. */
  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#current = readPair(options.certFile, options.keyFile);
    requireUnexpired(this.#current, options.certFile, options.keyFile, options.clock.now());
    options.onServing?.(this.#current);
  }

  get current(): KeyPair {
    return this.#current;
  }

  /** It must not fail before the expiry: all replicas would become unready at once. */
  readonly problem = (): string | undefined => expiryProblem(this.#current, this.#options.clock.now());

  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    const { certFile, keyFile } = this.#options;
    // The folder, not the file: the kubelet swaps a symbolic link beside it.
    for (const folder of new Set([dirname(certFile), dirname(keyFile)])) {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#settleThenReload());
        watcher.on('error', (error) => this.#warnOfPolling(folder, error));
        this.#watchers.push(watcher);
      } catch (error) {
        this.#warnOfPolling(folder, error);
      }
    }
    this.#poll();
  }

  close(): void {
    this.#cancelPoll();
    this.#cancelSettle();
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  #warnOfPolling(folder: string, error: unknown): void {
    this.#options.log.warn(
      'the server cannot watch the certificate folder for changes; it checks the files periodically',
      { folder, error: describe(error) },
    );
  }

  /** Some file systems never notify. */
  #poll(): void {
    this.#cancelPoll = this.#options.clock.schedule(POLL_MS, () => {
      this.#reload();
      this.#warnBeforeExpiry();
      this.#poll();
    });
  }

  /** Once for each pair, in its last day. */
  #warnBeforeExpiry(): void {
    const { certFile, clock, log } = this.#options;
    const current = this.#current;
    if (this.#warnedAbout === current || current.expiresAtMs - clock.now() >= DAY_MS) return;
    this.#warnedAbout = current;
    log.warn('serving certificate expires within a day and was not renewed; check what renews its files', {
      certFile,
      expiresAt: formatTime(current.expiresAtMs),
    });
  }

  #settleThenReload(): void {
    this.#cancelSettle();
    this.#cancelSettle = this.#options.clock.schedule(SETTLE_MS, () => this.#reload());
  }

  #reload(): void {
    const { certFile, keyFile, clock, log } = this.#options;
    try {
      const pair = readPair(certFile, keyFile);
      // Without this, a current pair that has expired would be logged as an unusable new pair.
      if (pair.cert.equals(this.#current.cert) && pair.key.equals(this.#current.key)) {
        this.#loggedError = undefined;
        return;
      }
      requireUnexpired(pair, certFile, keyFile, clock.now());
      this.#loggedError = undefined;
      // First the listener: if it throws, the current pair stays.
      this.#listener(pair);
      this.#current = pair;
      this.#options.onServing?.(pair);
      log.info('serving certificate reloaded', { expiresAt: formatTime(pair.expiresAtMs) });
    } catch (error) {
      const problem = describe(error);
      if (problem === this.#loggedError) return;
      this.#loggedError = problem;
      log.error('the serving certificate files are unusable; the certificate loaded before stays in use', {
        error: problem,
      });
    }
  }
}

/** Even if it has expired. @throws CodedError `BadCertificate` */
function readPair(certFile: string, keyFile: string): KeyPair {
  const cert = readPem(certFile, '--cert-file');
  const key = readPem(keyFile, '--key-file');
  try {
    return readKeyPair(cert, key);
  } catch (error) {
    throw unusablePair(certFile, keyFile, describe(error));
  }
}

/** @throws CodedError `BadCertificate` */
function requireUnexpired(pair: KeyPair, certFile: string, keyFile: string, nowMs: number): void {
  const expired = expiryProblem(pair, nowMs);
  if (expired !== undefined) throw unusablePair(certFile, keyFile, expired);
}

const unusablePair = (certFile: string, keyFile: string, cause: string): CodedError =>
  badCertificate(
    `${certFile} and ${keyFile} are not a usable serving certificate and key: ${cause}; --cert-file needs an unexpired PEM certificate chain, and --key-file its private key in PEM`,
  );

/**
 * Checks that TLS accepts the file, and that it has a certificate; not that this is an authority.
 * @throws CodedError `BadCertificate` that names the file and the cause.
 */
export function readClientCAs(file: string): Buffer {
  const pem = readPem(file, '--client-ca-file');
  try {
    // Parses the whole file, but also accepts one without certificates.
    createSecureContext({ ca: pem });
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw badCertificate(
      `${file} contains no CA certificate: ${describe(error)}; --client-ca-file needs PEM CA certificates`,
      error,
    );
  }
}

function readPem(file: string, flag: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw badCertificate(`cannot read ${file}: ${describe(error)}; ${flag} needs a readable PEM file`, error);
  }
}

function badCertificate(message: string, cause?: unknown): CodedError {
  return new CodedError('BadCertificate', message, { cause });
}
