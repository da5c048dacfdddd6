import type { ProviderType } from '../api/notify/notification-provider.ts';
import type { Clock } from '../kit/clock.ts';
import { CodedError, describe } from '../kit/errors.ts';
import { CallLimit } from '../kube/json-call.ts';
import { createResolve, type Lookup } from './destination.ts';
import { sendSlack } from './media/slack.ts';
import { sendTeams } from './media/teams.ts';
import { sendWebhook } from './media/webhook.ts';
import { saidBy } from './said.ts';
import type { Medium, Send } from './sink.ts';

const media: Readonly<Record<ProviderType, Medium>> = {
  Webhook: sendWebhook,
  Slack: sendSlack,
  Teams: sendTeams,
  // In a file of its own: other features would hold nodemailer in memory, too.
  Email: async (delivery) => (await import('./media/email.ts')).sendEmail(delivery),
};

interface SendDeps {
  readonly clock: Clock;
  /** Ranges of addresses, such as `10.0.0.0/8`, that may be called although they are not public. */
  readonly allowed: readonly string[];
  readonly lookup?: Lookup;
}

export function createSend({ clock, allowed, lookup }: SendDeps): Send {
  const resolve = createResolve(allowed, lookup);
  return async (sink, message, signal) => {
    const limit = new CallLimit(clock, signal, sink.timeoutMs);
    try {
      const delivery = { sink, message, resolve, clock, signal: limit.signal };
      const answer = await limit.race(media[sink.type](delivery));
      return { ...answer, said: saidBy(sink, answer.said) };
    } catch (error) {
      signal.throwIfAborted();
      const code =
        error instanceof CodedError && error.code === 'AddressNotAllowed' ? 'AddressNotAllowed' : 'Unreachable';
      const reason = limit.timedOut ? limit.signal.reason : error;
      const isUntrusted =
        error instanceof Error && 'code' in error && /SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test(String(error.code));
      const said = isUntrusted
        ? 'its certificate is not trusted; set spec.caBundle to the PEM of its authority'
        : describe(reason);
      return { delivered: false, code, said: saidBy(sink, said) };
    } finally {
      limit.release();
    }
  };
}
