import type { ProviderType } from '../api/notify/notification-provider.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError } from '../kit/errors.ts';
import type { Resolve } from './destination.ts';
import type { Fact } from './fact.ts';

/** The provider or its Secret cannot be used. `message` quotes nothing of the Secret. */
export class UnusableSink extends CodedError {
  constructor(
    override readonly code: 'SecretInvalid' | 'SecretUnreadable' | 'SpecInvalid' | 'Suspended',
    message: string,
  ) {
    super(code, message);
  }
}

/** A provider with the values of its Secret, checked. */
export interface Sink {
  readonly type: ProviderType;
  /** Of the Secret or the spec. Absent only for Slack with a token. */
  readonly address?: URL;
  /** Of the Secret, like `login` and the keys. */
  readonly token?: string;
  readonly login?: { readonly username: string; readonly password: string };
  /** Webhook: each signs, the newest first. */
  readonly signingKeys: readonly Buffer[];
  readonly channel?: string;
  readonly sender?: string;
  readonly caBundle?: string;
  readonly timeoutMs: number;
}

/** What is sent in one call. */
export interface Message {
  /** The id of the only fact, or one of the digest or test. */
  readonly id: string;
  /** One; several of one namespace for a digest, oldest first; none for a test. */
  readonly facts: readonly Fact[];
  /** A mail address in place of the provider's channel. */
  readonly to?: string;
  /** Without a slash at the end. */
  readonly linkBase?: string;
  /** Identifies the cluster: `source` of the CloudEvent. */
  readonly source: string;
  /** Where an earlier message about the same request is, as the sink answered (`Answer.ref`). */
  readonly earlier?: string;
  /** Epoch ms. */
  readonly nowMs: number;
}

/** `said`: for people, at most 512 printable characters, without credentials. */
export type Answer =
  | { readonly delivered: true; readonly said: string; readonly ref?: string }
  | {
      readonly delivered: false;
      /**
       * Gone: 410, so nothing is sent until the provider changes. AddressNotAllowed: after the
       * resolution. Refused: the sink answered with an error. Unreachable: no answer in time.
       */
      readonly code: 'Gone' | 'AddressNotAllowed' | 'Refused' | 'Unreachable' | UnusableSink['code'];
      readonly said: string;
      readonly retryAfterMs?: number;
    };

/** Never rejects, except with the reason of `signal`. */
export type Send = (sink: Sink, message: Message, signal: AbortSignal) => Promise<Answer>;

/** One call to a sink. */
export interface Call {
  readonly sink: Sink;
  readonly message: Message;
  readonly resolve: Resolve;
  readonly clock: Clock;
  /** Aborts at the time limit, or with the caller's signal. */
  readonly signal: AbortSignal;
}

/** Rejects if there is no answer. `said` may still contain credentials and control characters. */
export type Medium = (call: Call) => Promise<Answer>;
