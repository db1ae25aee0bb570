using System;
using System.Diagnostics;
using System.IO;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Threading;

namespace Eyestream
{
    /// <summary>What a link tells, on the link's own thread.</summary>
    public interface ILinkListener
    {
        void Message(string topic, byte[] payload, bool retained);
        void Linked();
        void Unlinked(string reason);
        void Fault(Fault fault);
    }

    /// <summary>A subscriber of MQTT 3.1.1 on a thread of its own. When the link is lost it comes back by itself, for ever:
    /// after a quarter of a second, then after twice as long each time, at most ten seconds.</summary>
    public sealed class MqttLink : IDisposable
    {
        const int FirstPauseMs = 250, LongestPauseMs = 10000, SteadyMs = 10000, MostBeforeSubscribed = 64;
        const int LargeAtOnce = 65536, GuardMs = 200;

        readonly BrokerPlace place;
        readonly string[] topics, pins;
        readonly ILinkListener listener;
        readonly object writing = new object();
        readonly Random random = new Random();
        readonly ManualResetEvent over = new ManualResetEvent(false);
        readonly Stopwatch clock = Stopwatch.StartNew();
        volatile TcpClient socket;
        volatile bool silent;
        long packetBegan = -1, patienceMs, patientUntil;

        public MqttLink(BrokerPlace place, string[] topics, ILinkListener listener)
        {
            this.place = place;
            this.topics = topics;
            this.listener = listener;
            pins = place.Pins();
            new Thread(Run) { IsBackground = true, Name = "eyestream" }.Start();
        }

        /// <summary>End the link; returns at once.</summary>
        public void Dispose()
        {
            over.Set();
            var now = socket;
            if (now != null) now.Close();
        }

        void Run()
        {
            int pause = FirstPauseMs;
            while (!over.WaitOne(0))
            {
                long began = clock.ElapsedMilliseconds;
                Fault fault = Fallen();
                if (over.WaitOne(0)) break;
                listener.Unlinked(fault.Message);
                listener.Fault(fault);
                if (clock.ElapsedMilliseconds - began > SteadyMs) pause = FirstPauseMs;
                over.WaitOne(pause + random.Next(pause / 2)); // not all at once where a broker comes back
                pause = Math.Min(2 * pause, LongestPauseMs);
            }
        }

        /// <summary>Live through one connection; why it ended.</summary>
        Fault Fallen()
        {
            try { return Session(); }
            catch (Refused refusal) { return new Fault(FaultKind.Protocol, refusal.Message); }
            catch (Exception fault) when (IsOfALink(fault))
            {
                if (silent) return new Fault(FaultKind.Network, Silence);
                bool tls = fault is AuthenticationException || fault is CryptographicException || fault is NotSupportedException;
                return tls ? new Fault(FaultKind.Tls, Untrusted(fault)) : new Fault(FaultKind.Network, place.Host + ":" + place.Port + ": " + Plain(fault));
            }
        }

        /// <summary>What streams and sockets throw when a link ends; Mono's stream of TLS wraps it in an AggregateException.
        /// Where we close a connection that this thread uses, runtimes throw what they like.</summary>
        bool IsOfALink(Exception fault)
        {
            return silent || over.WaitOne(0)
                || fault is IOException || fault is SocketException || fault is ObjectDisposedException || fault is InvalidOperationException
                || fault is AuthenticationException || fault is CryptographicException || fault is NotSupportedException
                || fault is AggregateException;
        }

        static string Plain(Exception fault) { return fault is ObjectDisposedException ? "the link was closed" : fault.GetBaseException().Message; }

        string Silence { get { return "the broker at " + place.Host + ":" + place.Port + " is silent"; } }

        string Untrusted(Exception fault)
        {
            string expected = pins.Length > 0 ? "expected a certificate with the pin" : "expected one for " + place.Host + " of an authority that this system trusts, or a pin";
            return "the broker's certificate was refused (" + fault.GetBaseException().Message + "): " + expected;
        }

        Fault Session()
        {
            string why;
            using (var tcp = Connected(out why))
            {
                if (tcp == null) return new Fault(FaultKind.Network, "no broker answers at " + place.Host + ":" + place.Port + ": " + why);
                silent = false;
                BePatient(1000L * place.TimeoutSeconds);
                using (new Timer(Guard, tcp, GuardMs, GuardMs))
                using (Stream stream = place.Tls ? Secured(tcp.GetStream()) : tcp.GetStream())
                    return Subscribed(stream);
            }
        }

        Fault Subscribed(Stream stream)
        {
            Send(stream, MqttPackets.Connect(place, "unity-" + Guid.NewGuid().ToString("N").Substring(0, 16)));
            byte[] answer = Expect(stream, MqttPackets.ConnAck, 2);
            Refused.Unless(answer.Length == 2, "the broker answers CONNECT with " + answer.Length + " bytes: expected 2");
            if (answer[1] == 4 || answer[1] == 5) return new Fault(FaultKind.Login, "the broker refuses the login of user '" + place.User + "'");
            if (answer[1] != 0) return new Fault(FaultKind.Protocol, "the broker refuses MQTT 3.1.1, code " + answer[1]);
            listener.Linked(); // before the broker sends what it has kept
            Send(stream, MqttPackets.Subscribe(topics));
            byte[] granted = Expect(stream, MqttPackets.SubAck, MqttPackets.MostBytes);
            for (int i = 2; i < granted.Length && i - 2 < topics.Length; i++)
                if (granted[i] > 2) listener.Fault(new Fault(FaultKind.Rights, "the broker does not let us read " + topics[i - 2]));
            BePatient(1500L * place.KeepAliveSeconds);
            int every = 1000 * place.KeepAliveSeconds;
            using (new Timer(Ping, stream, every, every))
                while (!over.WaitOne(0)) Take(stream);
            return new Fault(FaultKind.Network, "the link was closed");
        }

        void BePatient(long ms)
        {
            Interlocked.Exchange(ref patienceMs, ms);
            Heard();
        }

        void Heard() { Interlocked.Exchange(ref patientUntil, clock.ElapsedMilliseconds + Interlocked.Read(ref patienceMs)); }

        /// <summary>Close a connection on which the broker is silent for too long. A timeout of the socket would not do:
        /// runtimes differ in whether a stream of TLS keeps to it.</summary>
        void Guard(object tcp)
        {
            if (clock.ElapsedMilliseconds < Interlocked.Read(ref patientUntil)) return;
            silent = true;
            ((TcpClient)tcp).Close();
        }

        /// <summary>A connection to one of the host's addresses; null where none answers in time.</summary>
        TcpClient Connected(out string why)
        {
            why = "the name has no address";
            foreach (IPAddress address in Dns.GetHostAddresses(place.Host))
            {
                var tcp = new TcpClient(address.AddressFamily);
                socket = tcp;
                why = "nothing came within " + place.TimeoutSeconds + " s";
                try
                {
                    var connecting = tcp.BeginConnect(address, place.Port, null, null);
                    if (WaitHandle.WaitAny(new[] { connecting.AsyncWaitHandle, over }, 1000 * place.TimeoutSeconds) == 0)
                    {
                        tcp.EndConnect(connecting);
                        tcp.NoDelay = true;
                        tcp.SendTimeout = 1000 * place.TimeoutSeconds;
                        return tcp;
                    }
                }
                catch (SocketException fault) { why = fault.Message; } // the next address may answer
                tcp.Close();
            }
            return null;
        }

        Stream Secured(Stream plain)
        {
            var secured = new SslStream(plain, false, Trusted);
            secured.AuthenticateAsClient(place.Host, null, SslProtocols.Tls12, false);
            return secured;
        }

        bool Trusted(object sender, X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
        {
            if (pins.Length == 0) return errors == SslPolicyErrors.None;
            if (certificate == null) return false;
            using (var hash = SHA256.Create())
            {
                string found = BitConverter.ToString(hash.ComputeHash(certificate.GetRawCertData())).Replace("-", "");
                return Array.IndexOf(pins, found) >= 0;
            }
        }

        void Ping(object stream)
        {
            try { Send((Stream)stream, MqttPackets.Ping()); }
            catch (Exception fault) when (IsOfALink(fault)) { } // the reader notices it, too
        }

        void Send(Stream stream, byte[] packet) { lock (writing) stream.Write(packet, 0, packet.Length); }

        void Take(Stream stream)
        {
            byte head;
            byte[] body = Packet(stream, MqttPackets.MostBytes, out head);
            if ((head & 0xF0) == MqttPackets.Publish) Deliver(stream, head, body);
            else Refused.Unless(head == MqttPackets.PingResp, "the broker sends a packet that is not for a subscriber: " + head.ToString("x2"));
        }

        void Deliver(Stream stream, byte head, byte[] body)
        {
            string topic;
            byte[] payload;
            int number;
            MqttPackets.Parse(head, body, out topic, out payload, out number);
            listener.Message(topic, payload, (head & 1) != 0);
            if (number >= 0) Send(stream, MqttPackets.Acknowledge(number)); // only now: it is in our queue
        }

        /// <summary>The answer of a kind; a broker may send messages of our topics before it answers SUBSCRIBE.</summary>
        byte[] Expect(Stream stream, byte kind, int most)
        {
            for (int i = 0; i < MostBeforeSubscribed; i++)
            {
                byte head;
                byte[] body = Packet(stream, most, out head);
                if (head == kind) return body;
                Refused.Unless((head & 0xF0) == MqttPackets.Publish && kind == MqttPackets.SubAck, "no MQTT broker is at " + place.Host + ":" + place.Port);
                Deliver(stream, head, body);
            }
            throw new Refused("the broker does not answer SUBSCRIBE");
        }

        byte[] Packet(Stream stream, int most, out byte head)
        {
            packetBegan = -1;
            return MqttPackets.Read(count => Bytes(stream, count), most, out head);
        }

        /// <summary>So many bytes. What is announced is not believed: memory grows with what has come.</summary>
        byte[] Bytes(Stream stream, int count)
        {
            var found = new byte[Math.Min(count, LargeAtOnce)];
            for (int at = 0; at < count;)
            {
                if (at == found.Length) Array.Resize(ref found, (int)Math.Min(2L * at, count));
                int more = stream.Read(found, at, found.Length - at);
                if (more <= 0) throw new IOException("the broker closed the connection");
                Heard();
                if (packetBegan < 0) packetBegan = clock.ElapsedMilliseconds;
                if (clock.ElapsedMilliseconds - packetBegan > 3000L * place.TimeoutSeconds) throw new IOException("the broker takes too long for one packet");
                at += more;
            }
            return found;
        }
    }
}
