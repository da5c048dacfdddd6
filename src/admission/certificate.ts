import { X509Certificate } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Cancel, type Clock, formatTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { expiryOf, type KeyPair, readKeyPair } from '../kit/key-pair.ts';
import type { Log } from '../observe/log.ts';

/** The certificate and key that the webhook port presents. */
export interface ServingCertificate {
  readonly current: KeyPair;
  /** Calls back with each new pair until `close`, and perhaps at once with the current one, which may be newer than a value read before. */
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

const POLL_MS = 10_000;
/** Editors and kubelets write in several steps; an earlier read would find a half-written pair. */
const SETTLE_MS = 100;
const DAY_MS = 24 * 3600 * 1000;

/**
 * The serving certificate, reloaded when its files change. If the new pair is unusable (half-written, mismatched, expired), the server
 * logs that and keeps the current pair.
 */
export class Certificate implements ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #watchers: FSWatcher[] = [];
  #current: KeyPair;
  #listener: (pair: KeyPair) => void = () => {};
  #cancelPoll: Cancel = () => {};
  #cancelSettle: Cancel = () => {};
  /** The last logged problem: a broken pair is logged once, not at every poll. */
  #problem = '';
  #warnedAbout: KeyPair | undefined;

  /** @throws CodedError `BadCertificate` if the pair is unusable. */
  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#current = loadKeyPair(options.certFile, options.keyFile, options.clock.now());
    options.onServing?.(this.#current);
  }

  get current(): KeyPair {
    return this.#current;
  }

  /**
   * A readiness check: the problem, only once the certificate has expired. An earlier failure would make every replica unready at the
   * same time, although their certificate still works.
   */
  readonly problem = (): string | undefined => expiryOf(this.#current, this.#options.clock.now());

  /** Calls back with each new pair until `close`. */
  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    const { certFile, keyFile, log } = this.#options;
    // The folder, not the file: the kubelet swaps a symbolic link beside it.
    for (const folder of new Set([dirname(certFile), dirname(keyFile)])) {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#settleThenReload());
        watcher.on('error', (error) => log.warn('failed to watch the certificate folder', { error: describe(error) }));
        this.#watchers.push(watcher);
      } catch (error) {
        log.warn('failed to watch the certificate folder; polling only', { folder, error: describe(error) });
      }
    }
    this.#poll();
  }

  close(): void {
    this.#cancelPoll();
    this.#cancelSettle();
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  /** Polls, because some file systems never notify. */
  #poll(): void {
    this.#cancelPoll = this.#options.clock.schedule(POLL_MS, () => {
      this.#reload();
      this.#warnBeforeExpiry();
      this.#poll();
    });
  }

  /** Warns once per certificate. */
  #warnBeforeExpiry(): void {
    const { clock, log } = this.#options;
    const current = this.#current;
    if (this.#warnedAbout === current || current.expiresAtMs - clock.now() >= DAY_MS) return;
    this.#warnedAbout = current;
    log.warn('serving certificate expires within a day and was not renewed', {
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
      const pair = loadKeyPair(certFile, keyFile, clock.now());
      this.#problem = '';
      if (pair.cert.equals(this.#current.cert) && pair.key.equals(this.#current.key)) return;
      this.#listener(pair);
      this.#current = pair;
      this.#options.onServing?.(pair);
      log.info('serving certificate reloaded', { expiresAt: formatTime(pair.expiresAtMs) });
    } catch (error) {
      const problem = describe(error);
      if (problem === this.#problem) return;
      this.#problem = problem;
      log.error('the new serving certificate is unusable; the previous one stays in use', { error: problem });
    }
  }
}

/** @throws CodedError `BadCertificate` that names the files and the cause. */
function loadKeyPair(certFile: string, keyFile: string, nowMs: number): KeyPair {
  const cert = readPem(certFile);
  const key = readPem(keyFile);
  try {
    const pair = readKeyPair(cert, key);
    const expired = expiryOf(pair, nowMs);
    if (expired !== undefined) throw new Error(expired);
    return pair;
  } catch (error) {
    throw badCertificate(`${certFile} and ${keyFile} are not a usable serving certificate and key`, error);
  }
}

/**
 * Reads a PEM file with one or more CA certificates; checks only that the first is a certificate.
 * @throws CodedError `BadCertificate` that names the file and the cause.
 */
export function readAuthorities(file: string): Buffer {
  const pem = readPem(file);
  try {
    createSecureContext({ ca: pem });
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw badCertificate(`${file} contains no CA certificate`, error);
  }
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw badCertificate(`cannot read ${file}`, error);
  }
}

function badCertificate(message: string, cause: unknown): CodedError {
  return new CodedError('BadCertificate', `${message}: ${describe(cause)}`, { cause });
}
