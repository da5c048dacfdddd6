import { createTransport } from 'nodemailer';
import { isMailAddress, parseRecipients } from '../addresses.ts';
import { connectTo } from '../destination.ts';
import type { Medium, Message } from '../sink.ts';
import { type MessageText, textOf } from './text.ts';

/** SMTP over TLS, or with STARTTLS, without which nothing is sent. */
export const sendEmail: Medium = async ({ sink, message, resolve, signal }) => {
  const { address, sender = '', channel = '', caBundle, login } = sink;
  const recipients = message.to === undefined ? parseRecipients(channel) : [message.to].filter(isMailAddress);
  if (address === undefined || !recipients?.length) {
    return { delivered: false, code: 'Refused', said: 'not sent: there is no valid mail address to send to' };
  }
  const host = address.hostname.replace(/^\[|\]$/g, '');
  const secure = address.protocol === 'smtps:';
  const port = Number(address.port) || (secure ? 465 : 587);
  const connection = await connectTo({ host, port, addresses: await resolve(host) }, signal);
  const transport = createTransport({
    connection,
    host,
    secure,
    requireTLS: true,
    // By default, it would be the name of this machine.
    name: sender.slice(sender.indexOf('@') + 1),
    maxResponseSize: 4096,
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(caBundle === undefined ? {} : { tls: { ca: caBundle } }),
    ...(login ? { auth: { user: login.username, pass: login.password } } : {}),
  });
  try {
    const { response, rejected } = await transport.sendMail({
      from: { name: '', address: sender },
      to: recipients.map((recipient) => ({ name: '', address: recipient })),
      ...mailOf(message),
      signal,
    });
    // A repetition would reach the others again.
    const missed = rejected.length > 0 ? `; refused for ${rejected.join(', ')}` : '';
    return { delivered: true, said: `${response}${missed}` };
  } catch (error) {
    if (!(error instanceof Error && 'response' in error && typeof error.response === 'string')) throw error;
    return { delivered: false, code: 'Refused', said: error.response };
  } finally {
    connection.destroy();
  }
};

/** Messages about one request refer to the same id, so that mail programs show them as a thread. */
export function mailOf(message: Message) {
  const text = textOf(message);
  const domain = `drawbridge.${message.source.replace(/[^A-Za-z0-9.-]+/g, '-')}`;
  const [fact, ...others] = message.facts;
  const thread = fact && others.length === 0 ? `<request.${fact.request.uid}@${domain}>` : undefined;
  return {
    subject: `[drawbridge] ${text.title}`,
    messageId: `<${message.id}@${domain}>`,
    ...(thread === undefined ? {} : { references: thread, inReplyTo: thread }),
    headers: { 'Auto-Submitted': 'auto-generated' },
    text: plainText(text),
    html: html(text),
  };
}

/** The paragraphs, by line. */
const partsOf = ({ title, lines, digest, footer, link, command }: MessageText): string[][] =>
  [
    [title],
    lines.map(({ label, value }) => `${label}: ${value}`),
    [...digest],
    [command, link].filter((part) => part !== undefined),
    ['-- ', footer],
  ].filter((part) => part.length > 0);

const plainText = (text: MessageText): string =>
  `${partsOf(text)
    .map((part) => part.join('\n'))
    .join('\n\n')}\n`;

const escaped = (text: string): string => text.replace(/[&<>"']/g, (found) => `&#${found.codePointAt(0)};`);

function html(text: MessageText): string {
  const lineOf = (line: string): string =>
    line === text.link ? `<a href="${escaped(line)}">${escaped(line)}</a>` : escaped(line);
  const paragraphs = partsOf(text).map((part) => `<p>${part.map(lineOf).join('<br>\n')}</p>`);
  const head = `<head><meta charset="utf-8"><title>${escaped(text.title)}</title></head>`;
  return `<!DOCTYPE html><html>${head}<body>\n${paragraphs.join('\n')}\n</body></html>`;
}
