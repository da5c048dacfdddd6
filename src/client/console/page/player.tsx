import { render } from 'preact';
import 'asciinema-player/dist/bundle/asciinema-player.css';
import './main.css';

render(<h1>Session</h1>, document.body);
