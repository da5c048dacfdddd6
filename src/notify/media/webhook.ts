import { cloudEventType } from '../../api/notify/events.ts';
import { formatTime } from '../../kit/clock.ts';
import { CodedError } from '../../kit/errors.ts';
import type { Fact } from '../fact.ts';
import type { Message } from '../sink.ts';
import { signedHeaders } from '../standard-webhook.ts';
import { answerOf, post } from './https.ts';
import type { Medium } from './medium.ts';
import { commandFor, linkTo } from './text.ts';

const maxDigestEvents = 100;

/** CloudEvents 1.0, structured JSON. */
interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  readonly time: string;
  readonly datacontenttype: 'application/json';
  readonly data: unknown;
}

/** Signed as Standard Webhooks say. */
export const sendWebhook: Medium = async (delivery) => {
  const { sink, message, clock } = delivery;
  if (sink.address === undefined) throw new CodedError('NoAddress', 'the provider has no address');
  const body = JSON.stringify(cloudEventOf(message));
  const signature = signedHeaders({ id: message.id, atMs: clock.now(), body }, sink.signingKeys);
  const headers = { 'content-type': 'application/cloudevents+json', ...signature };
  return answerOf(await post(delivery, { url: sink.address, headers, body }));
};

export function cloudEventOf(message: Message): CloudEvent {
  const [fact, ...others] = message.facts;
  if (fact !== undefined && others.length === 0) return { ...factEvent(fact, message), id: message.id };
  const data = fact
    ? {
        count: message.facts.length,
        events: message.facts.slice(0, maxDigestEvents).map((each) => factEvent(each, message)),
      }
    : {};
  return event(fact ? 'digest' : 'test', { id: message.id, source: message.source, atMs: message.nowMs, data });
}

function factEvent(fact: Fact, { source, linkBase }: Message): CloudEvent {
  const { namespace, kind, name } = fact.request;
  const data = { ...dataOf(fact), link: linkTo(fact, linkBase), command: commandFor(fact) };
  return event(fact.event, { id: fact.id, source, atMs: fact.atMs, data, subject: `${namespace}/${kind}/${name}` });
}

const event = (
  type: Parameters<typeof cloudEventType>[0],
  { id, source, atMs, data, subject }: Pick<CloudEvent, 'id' | 'source' | 'data' | 'subject'> & { atMs: number },
): CloudEvent => ({
  specversion: '1.0',
  id,
  source,
  type: cloudEventType(type),
  ...(subject === undefined ? {} : { subject }),
  time: formatTime(atMs),
  datacontenttype: 'application/json',
  data,
});

const optionalTime = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : formatTime(ms));

/** Each field is named, so that a new field of a fact leaves the cluster only on purpose. */
function dataOf(fact: Fact) {
  const { request, end, extension, session } = fact;
  return {
    request: { kind: request.kind, namespace: request.namespace, name: request.name, uid: request.uid },
    template: fact.template,
    requester: fact.requester,
    reason: fact.reason,
    pod: fact.pod,
    permissions: fact.permissions,
    duration: fact.duration,
    until: optionalTime(fact.untilMs),
    approvals: fact.approvals.map(({ name, have, need, groups }) => ({ name, have, need, groups })),
    votes: fact.votes.map(({ voter, decision, reason }) => ({ voter, decision, reason })),
    end: end && { how: end.how, code: end.code, by: end.by },
    extension: extension && { index: extension.index, by: extension.by, reason: extension.reason },
    reviewBy: optionalTime(fact.reviewByMs),
    session: session && {
      name: session.name,
      user: session.user,
      stream: session.stream,
      container: session.container,
      recording: session.recording,
    },
  };
}
