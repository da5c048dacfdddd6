import { X509Certificate } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Cancel, type Clock, formatTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { expiryOf, type KeyPair, readKeyPair } from '../kit/key-pair.ts';
import type { Log } from '../observe/log.ts';

/** What the webhooks are served with; where it comes from is not their concern. */
export interface ServingCertificate {
  readonly current: KeyPair;
  /** Calls back with each new pair until `close`. */
  start(listener: (pair: KeyPair) => void): void;
  close(): void;
}

interface CertificateOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of the first pair and of each that replaces it. */
  readonly onServing?: (pair: KeyPair) => void;
}

const POLL_MS = 10_000;
/** Editors and kubelets write in several steps; a look in the middle would only find a half-written pair. */
const SETTLE_MS = 100;
const DAY_MS = 24 * 3600 * 1000;

/**
 * The serving certificate, read again whenever its files change. A pair that cannot be used (half-written, mismatched, expired)
 * is logged and the one before it stays.
 */
export class Certificate implements ServingCertificate {
  readonly #options: CertificateOptions;
  readonly #watchers: FSWatcher[] = [];
  #current: KeyPair;
  #listener: (pair: KeyPair) => void = () => {};
  #cancelPoll: Cancel = () => {};
  #cancelSettle: Cancel = () => {};
  /** The last thing that was wrong, so that a broken pair is logged once and not at every poll. */
  #problem = '';
  #warnedOf: KeyPair | undefined;

  /** @throws CodedError `BadCertificate` when the pair cannot be used. */
  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#current = loadKeyPair(options.certFile, options.keyFile, options.clock.now());
    options.onServing?.(this.#current);
  }

  get current(): KeyPair {
    return this.#current;
  }

  /**
   * A readiness check: the problem once the certificate has expired. Not before: a certificate that still works is no reason to take
   * every replica away from the apiserver at the same time.
   */
  readonly problem = (): string | undefined => expiryOf(this.#current, this.#options.clock.now());

  /** Calls back with each new pair until `close`. */
  start(listener: (pair: KeyPair) => void): void {
    this.#listener = listener;
    const { certFile, keyFile, log } = this.#options;
    // The folder, not the file: kubelet swaps a symbolic link beside it.
    for (const folder of new Set([dirname(certFile), dirname(keyFile)])) {
      try {
        const watcher = watch(folder, { persistent: false }, () => this.#settleThenReload());
        watcher.on('error', (error) => log.warn('certificate folder cannot be watched', { error: describe(error) }));
        this.#watchers.push(watcher);
      } catch (error) {
        log.warn('certificate folder cannot be watched; polling only', { folder, error: describe(error) });
      }
    }
    this.#poll();
  }

  close(): void {
    this.#cancelPoll();
    this.#cancelSettle();
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  /** Some file systems never notify. */
  #poll(): void {
    this.#cancelPoll = this.#options.clock.schedule(POLL_MS, () => {
      this.#reload();
      this.#warnOfEnd();
      this.#poll();
    });
  }

  /** Once a certificate. */
  #warnOfEnd(): void {
    const { clock, log } = this.#options;
    const current = this.#current;
    if (this.#warnedOf === current || current.expiresAtMs - clock.now() >= DAY_MS) return;
    this.#warnedOf = current;
    log.warn('the serving certificate has less than a day left and was not renewed', {
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
      log.error('new serving certificate not usable; keeping the one before', { error: problem });
    }
  }
}

/** @throws CodedError `BadCertificate` that says which file and why. */
function loadKeyPair(certFile: string, keyFile: string, nowMs: number): KeyPair {
  const cert = readPem(certFile);
  const key = readPem(keyFile);
  try {
    const pair = readKeyPair(cert, key);
    const expired = expiryOf(pair, nowMs);
    if (expired !== undefined) throw new Error(expired);
    return pair;
  } catch (error) {
    throw bad(`${certFile} and ${keyFile} do not make a serving certificate`, error);
  }
}

/** The authorities of a PEM file, one or several. @throws CodedError `BadCertificate` that says which file and why. */
export function readAuthorities(file: string): Buffer {
  const pem = readPem(file);
  try {
    createSecureContext({ ca: pem });
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw bad(`${file} holds no authority`, error);
  }
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw bad(`cannot read ${file}`, error);
  }
}

function bad(message: string, cause: unknown): CodedError {
  return new CodedError('BadCertificate', `${message}: ${describe(cause)}`, { cause });
}
