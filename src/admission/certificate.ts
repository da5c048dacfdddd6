import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import { type Cancel, type Clock, formatTime, parseTime } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import type { Log } from '../observe/log.ts';

/** A certificate chain and its key, both PEM, that belong together. */
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** End of the certificate's validity, epoch ms. */
  readonly expiresAtMs: number;
}

export interface CertificateOptions {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clock: Clock;
  readonly log: Log;
}

const POLL_MS = 10_000;
/** Editors and kubelets write in several steps; a look in the middle would only find a half-written pair. */
const SETTLE_MS = 100;
const DAY_MS = 24 * 3600 * 1000;

/**
 * The serving certificate, read again whenever its files change. A pair that cannot be used (half-written, mismatched, expired)
 * is logged and the one before it stays.
 */
export class Certificate {
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
  }

  get current(): KeyPair {
    return this.#current;
  }

  /**
   * A readiness check: the problem once the certificate has expired. Not before: a certificate that still works is no reason to take
   * every replica away from the apiserver at the same time.
   */
  readonly problem = (): string | undefined => {
    const { expiresAtMs } = this.#current;
    if (expiresAtMs > this.#options.clock.now()) return undefined;
    return `the serving certificate expired at ${formatTime(expiresAtMs)}`;
  };

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
export function loadKeyPair(certFile: string, keyFile: string, nowMs: number): KeyPair {
  const cert = readPem(certFile);
  const key = readPem(keyFile);
  try {
    const parsed = new X509Certificate(cert);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error('the key is not the one of the certificate');
    const expiresAtMs = parseValidity(parsed.validTo);
    if (expiresAtMs <= nowMs) throw new Error(`the certificate expired at ${formatTime(expiresAtMs)}`);
    // Also reads the rest of the chain, which the lines above do not look at.
    createSecureContext({ cert, key });
    return { cert, key, expiresAtMs };
  } catch (error) {
    throw bad(`${certFile} and ${keyFile} do not make a serving certificate`, error);
  }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** OpenSSL's form: `Nov  5 09:30:00 2027 GMT`. */
function parseValidity(text: string): number {
  const [, month = '', day = '', time = '', year = ''] = /^(\w{3}) +(\d+) ([\d:]+) (\d{4}) GMT$/.exec(text) ?? [];
  const twoDigits = (value: number | string): string => String(value).padStart(2, '0');
  const instant = parseTime(`${year}-${twoDigits(MONTHS.indexOf(month) + 1)}-${twoDigits(day)}T${time}Z`);
  if (instant === undefined) throw new Error(`the end of its validity cannot be read: ${text}`);
  return instant;
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
