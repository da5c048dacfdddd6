import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { SMTPServer } from 'smtp-server';
import { type Authority, issue } from './pki.ts';
import { portOf } from './ports.ts';
import { until } from './wait.ts';

/** A mail server on this machine that keeps what it gets, over STARTTLS. */
export class Mailbox {
  /** The messages as they came: RFC 5322. */
  readonly messages: string[] = [];
  /** Gets each further mail, as `mail` returns it. */
  onMail: (text: string) => void = () => undefined;
  readonly #server: SMTPServer;
  #port = 0;

  private constructor(authority: Authority) {
    const { certificate: cert, key } = issue(authority, { commonName: 'mail', serves: ['localhost', '127.0.0.1'] });
    this.#server = new SMTPServer({
      cert,
      key,
      authOptional: true,
      onData: (stream, _session, done) => void this.#keep(stream).then(() => done(), done),
    });
  }

  static async open(authority: Authority): Promise<Mailbox> {
    const mailbox = new Mailbox(authority);
    const listener = mailbox.#server.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    mailbox.#port = portOf(listener);
    return mailbox;
  }

  get address(): string {
    return `smtp://localhost:${this.#port}`;
  }

  /** Resolves with the headers and the text that a reader sees of the first mail whose subject contains the words. */
  async mail(words: string): Promise<string> {
    const isIt = (message: string): boolean => subjectOf(message).includes(words);
    return shownOf(await until(`a mail about ${words}`, () => this.messages.find(isIt), { timeoutMs: 30_000 }));
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(resolve));
  }

  async #keep(stream: Readable): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const message = Buffer.concat(chunks).toString();
    this.messages.push(message);
    this.onMail(shownOf(message));
  }
}

const shownOf = (message: string): string =>
  `To: ${headerOf(message, 'To')}\nSubject: ${subjectOf(message)}\n\n${plainTextOf(message)}`;

const headerOf = (message: string, name: string): string =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'm').exec(message)?.[1]?.replaceAll(/\r\n[ \t]/g, ' ') ?? '';

const subjectOf = (message: string): string => headerOf(message, 'Subject');

/** The first part, of type text/plain. */
function plainTextOf(message: string): string {
  const [, head = '', part = ''] = /^Content-Type: text\/plain(.*?)\r\n\r\n(.*?)\r\n----/ms.exec(message) ?? [];
  const text = head.includes('quoted-printable') ? unquoted(part) : part;
  return text.replaceAll('\r\n', '\n').trim();
}

/** Of RFC 2045. */
const unquoted = (text: string): string =>
  Buffer.from(
    text
      .replaceAll('=\r\n', '')
      .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString();
