import { own } from '../../kit/json-value.ts';
import { parseJson } from '../../kit/safe-json.ts';
import type { Answer, Call, Medium } from '../sink.ts';
import { answerOf, type HttpsAnswer, post } from './https.ts';
import { type MessageText, textOf } from './text.ts';

/** Of Block Kit, in characters after escaping. */
const limits = { header: 150, section: 3000, url: 3000 };

const api = new URL('https://slack.com/api');
/** The API repeats the message in its answer. */
const maxApiAnswerBytes = 128 * 1024;

/** To an incoming webhook, or with a token to a channel, where it edits an earlier message. */
export const sendSlack: Medium = async (delivery) => {
  const { sink, message } = delivery;
  const text = slackMessage(textOf(message));
  if (sink.token === undefined) return answerOf(await post(delivery, { body: JSON.stringify(text) }));
  const { earlier = '' } = message;
  const [, channel, ts] = /^([^/]+)\/([^/]+)$/.exec(earlier) ?? [];
  if (channel !== undefined && ts !== undefined) {
    const { answer, error } = await callApi(delivery, 'chat.update', { ...text, channel, ts });
    // Such as message_not_found, or channel_not_found after the provider moved.
    if (answer.delivered || error === '' || error === 'ratelimited') return answer;
  }
  return (await callApi(delivery, 'chat.postMessage', { ...text, channel: sink.channel })).answer;
};

/** `error`: the code of Slack, or empty. */
interface ApiAnswer {
  readonly answer: Answer;
  readonly error: string;
}

async function callApi(delivery: Call, method: string, content: object): Promise<ApiAnswer> {
  const { token = '', address = api } = delivery.sink;
  const url = new URL(`${address.href.replace(/(?<!\/)\/+$/, '')}/${method}`);
  const headers = { authorization: `Bearer ${token}` };
  const http = await post(delivery, { url, headers, body: JSON.stringify(content), maxAnswerBytes: maxApiAnswerBytes });
  return http.status === 200 ? readApiAnswer(http) : { answer: answerOf(http), error: '' };
}

function readApiAnswer({ body, retryAfterMs }: HttpsAnswer): ApiAnswer {
  const json = parsed(body);
  const [channel, ts, error] = [own(json, 'channel'), own(json, 'ts'), own(json, 'error')];
  if (own(json, 'ok') === true) {
    const ref = typeof channel === 'string' && typeof ts === 'string' ? `${channel}/${ts}` : '';
    const isRef = /^\w{1,64}\/[\d.]{1,64}$/.test(ref);
    return { answer: { delivered: true, said: 'Slack: ok', ...(isRef ? { ref } : {}) }, error: '' };
  }
  const code = typeof error === 'string' ? error.slice(0, 100) : 'the answer is not one of the Slack API';
  const retry = retryAfterMs === undefined ? {} : { retryAfterMs };
  return { answer: { delivered: false, code: 'Refused', said: `Slack: ${code}`, ...retry }, error: code };
}

function parsed(body: string): unknown {
  try {
    return parseJson(Buffer.from(body));
  } catch {
    return undefined;
  }
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** At most `max` characters, without a part of an entity or of a character. */
function escaped(text: string, max: number): string {
  let whole = '';
  // Up to where an ellipsis still fits.
  let cut = '';
  for (const character of text) {
    whole += entities[character] ?? character;
    if (whole.length < max) cut = whole;
  }
  return whole.length <= max ? whole : `${cut}…`;
}

/** Of escaped text. In it, neither mentions nor links nor formatting have a meaning. */
const plain = (text: string) => ({ type: 'plain_text' as const, text, emoji: false as const });

export function slackMessage({ title, lines, digest, footer, link, command }: MessageText) {
  const texts = [...lines.map(({ label, value }) => `${label}: ${value}`), ...digest];
  const button = link !== undefined &&
    link.length <= limits.url && { type: 'button' as const, action_id: 'open', text: plain('Open'), url: link };
  return {
    text: escaped(title, limits.section),
    mrkdwn: false,
    parse: 'none',
    link_names: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: 'header' as const, text: plain(escaped(title, limits.header)) },
      ...texts.map((line) => ({ type: 'section' as const, text: plain(escaped(line, limits.section)) })),
      ...(command === undefined ? [] : [code(command)]),
      ...(button ? [{ type: 'actions' as const, elements: [button] }] : []),
      { type: 'context' as const, elements: [plain(escaped(footer, limits.section))] },
    ],
  };
}

/** Unlike in mrkdwn, nothing in it can end it. */
const code = (text: string) => ({
  type: 'rich_text' as const,
  elements: [{ type: 'rich_text_preformatted' as const, elements: [{ type: 'text' as const, text }] }],
});
