import { createHmac } from 'node:crypto';
import { cloudEventType } from '../../api/notify/events.ts';
import { formatTime } from '../../kit/clock.ts';
import type { Fact } from '../fact.ts';
import type { Medium, Message } from '../sink.ts';
import { answerOf, post } from './https.ts';
import { commandFor, linkTo } from './text.ts';

/** Signed by each key, as Standard Webhooks 1.0 say. */
export const sendWebhook: Medium = async (delivery) => {
  const { sink, message, clock } = delivery;
  const body = JSON.stringify(cloudEventOf(message));
  const timestamp = String(Math.floor(clock.now() / 1000));
  const signatures = sink.signingKeys.map((key) =>
    createHmac('sha256', key).update(`${message.id}.${timestamp}.${body}`).digest('base64'),
  );
  const headers = {
    'content-type': 'application/cloudevents+json',
    'webhook-id': message.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.map((signature) => `v1,${signature}`).join(' '),
  };
  return answerOf(await post(delivery, { headers, body }));
};

/** CloudEvents 1.0, structured JSON. */
export function cloudEventOf(message: Message) {
  const { id, source, nowMs: atMs, facts } = message;
  const [fact, ...others] = facts;
  if (fact !== undefined && others.length === 0) return factEvent(fact, message);
  if (fact === undefined) return event('test', { id, source, atMs, data: {} });
  const events = facts.map((each) => factEvent(each, message));
  return event('digest', { id, source, atMs, data: { count: facts.length, events } });
}

function factEvent(fact: Fact, { source, linkBase }: Message) {
  const { namespace, kind, name } = fact.request;
  const data = { ...dataOf(fact), link: linkTo(fact, linkBase), command: commandFor(fact) };
  const subject = `${namespace}/${kind}/${name}`;
  return { ...event(fact.event, { id: fact.id, source, atMs: fact.atMs, data }), subject };
}

const event = (
  type: Parameters<typeof cloudEventType>[0],
  { atMs, ...rest }: { readonly id: string; readonly source: string; readonly atMs: number; readonly data: object },
) => ({
  specversion: '1.0',
  type: cloudEventType(type),
  time: formatTime(atMs),
  datacontenttype: 'application/json',
  ...rest,
});

const optionalTime = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatTime(ms));

/** At any depth, so that a new field of a fact leaves the cluster only on purpose. */
const fields =
  'request kind namespace name uid template requester reason pod permissions duration until approvals have need groups ' +
  'votes voter decision end how code by extension index reviewBy session user stream container recording';

function dataOf(fact: Fact): object {
  const data = { ...fact, until: optionalTime(fact.untilMs), reviewBy: optionalTime(fact.reviewByMs) };
  return JSON.parse(JSON.stringify(data, fields.split(' ')));
}
