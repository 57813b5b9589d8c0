#include "common/tcp_sampler.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/host_counters.h"

namespace hydra {
namespace {

constexpr std::size_t kAnswerBytes = std::size_t{1} << 18;
// Offsets in struct tcp_info of linux/tcp.h, which cannot be included together with the C library's:
// tcpi_notsent_bytes; tcpi_busy_time, _rwnd_limited and _sndbuf_limited; tcpi_bytes_sent.
constexpr std::size_t kUnsentAt = 144;
constexpr std::size_t kTimesAt = 168;
constexpr std::size_t kBytesSentAt = 200;

template <typename T>
T at(std::string_view bytes, std::size_t offset) {
    T it{};
    std::memcpy(&it, bytes.data() + offset, sizeof it);
    return it;
}

struct Request {
    nlmsghdr header;
    inet_diag_req_v2 asked;
};

// Adds the connection of one answer, unless the kernel's answer is too short.
void parse(std::string_view answer, TcpConnections& into) {
    if (answer.size() < sizeof(inet_diag_msg)) {
        return;
    }
    const auto header = at<inet_diag_msg>(answer, 0);
    std::string_view attributes = answer.substr(NLMSG_ALIGN(sizeof header));
    while (attributes.size() >= sizeof(nlattr)) {
        const auto attribute = at<nlattr>(attributes, 0);
        const std::size_t length =
            std::clamp<std::size_t>(attribute.nla_len, sizeof attribute, attributes.size());
        const std::string_view info = attributes.substr(sizeof attribute, length - sizeof attribute);
        if (attribute.nla_type == INET_DIAG_INFO && info.size() >= kBytesSentAt + sizeof(std::uint64_t)) {
            const auto times_us = at<std::array<std::uint64_t, 3>>(info, kTimesAt);
            const std::uint64_t name =
                header.id.idiag_cookie[0] | static_cast<std::uint64_t>(header.id.idiag_cookie[1]) << 32;
            into[name] = {.inode = header.idiag_inode,
                          .unread_bytes = header.idiag_rqueue,
                          .unsent_bytes = at<std::uint32_t>(info, kUnsentAt),
                          .sent_bytes = at<std::uint64_t>(info, kBytesSentAt),
                          .busy_us = times_us[0],
                          .reader_us = times_us[1],
                          .buffer_us = times_us[2]};
            return;
        }
        attributes.remove_prefix(std::min<std::size_t>(NLA_ALIGN(length), attributes.size()));
    }
}

enum class Dump { more, done, failed };

Dump take(std::string_view data, TcpConnections& into) {
    while (data.size() >= sizeof(nlmsghdr)) {
        const auto header = at<nlmsghdr>(data, 0);
        if (header.nlmsg_type == NLMSG_DONE) {
            return Dump::done;
        }
        if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_len < sizeof header ||
            header.nlmsg_len > data.size()) {
            return Dump::failed;
        }
        parse(data.substr(sizeof header, header.nlmsg_len - sizeof header), into);
        data.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), data.size()));
    }
    return Dump::more;
}

bool dump(int asked, unsigned char family, std::vector<char>& room, TcpConnections& into) {
    Request request{};
    request.header.nlmsg_len = sizeof request;
    request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.asked.sdiag_family = family;
    request.asked.sdiag_protocol = IPPROTO_TCP;
    request.asked.idiag_ext = 1U << (INET_DIAG_INFO - 1U);
    request.asked.idiag_states = 1U << TCP_ESTABLISHED;
    if (send(asked, &request, sizeof request, 0) < 0) {
        return false;
    }
    Dump state = Dump::more;
    while (state == Dump::more) {
        const ssize_t length = recv(asked, room.data(), room.size(), 0);
        state = length <= 0 ? Dump::failed : take({room.data(), static_cast<std::size_t>(length)}, into);
    }
    return state == Dump::done;
}

// The inodes of a process's sockets; the process may end, and close them, at any time.
void add_sockets(pid_t process, std::set<std::uint64_t>& inodes) {
    constexpr std::string_view kSocket = "socket:[";
    std::error_code error;
    std::filesystem::directory_iterator file("/proc/" + std::to_string(process) + "/fd", error);
    while (!error && file != std::filesystem::directory_iterator()) {
        std::error_code closed;
        const std::string name = std::filesystem::read_symlink(file->path(), closed).string();
        if (!closed && name.starts_with(kSocket)) {
            std::uint64_t inode = 0;
            std::from_chars(name.data() + kSocket.size(), name.data() + name.size(), inode);
            inodes.insert(inode);
        }
        file.increment(error);
    }
}

}  // namespace

std::optional<TcpConnections> established() {
    const int asked = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (asked < 0) {
        return std::nullopt;
    }
    const timeval within{.tv_sec = 1, .tv_usec = 0};
    setsockopt(asked, SOL_SOCKET, SO_RCVTIMEO, &within, sizeof within);
    TcpConnections found;
    std::vector<char> room(kAnswerBytes);
    const bool complete = dump(asked, AF_INET, room, found) && dump(asked, AF_INET6, room, found);
    close(asked);
    return complete ? std::optional(std::move(found)) : std::nullopt;
}

Connections between(const TcpConnections& before, const TcpConnections& now, std::int64_t elapsed_ns) {
    const auto half_us = static_cast<std::uint64_t>(elapsed_ns / 2 / 1000);
    Connections it;
    for (const auto& [name, tcp] : now) {
        it.unsent_bytes += tcp.unsent_bytes;
        it.unread_bytes += tcp.unread_bytes;
        const auto found = before.find(name);
        const TcpConnection last = found == before.end() ? TcpConnection{} : found->second;
        if (tcp.sent_bytes == last.sent_bytes && tcp.unsent_bytes == 0) {
            continue;
        }
        ++it.sending;
        const std::uint64_t reader_us = tcp.reader_us - last.reader_us;
        const std::uint64_t others_us = reader_us + tcp.buffer_us - last.buffer_us;
        if (reader_us >= half_us) {
            ++it.reader_limited;
        } else if (tcp.unsent_bytes > 0 && tcp.busy_us - last.busy_us >= half_us + others_us) {
            ++it.network_limited;
        }
    }
    return it;
}

std::optional<Connections> TcpSampler::read(const std::vector<pid_t>& processes) {
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns >= due_ns_) {
        const std::int64_t used_ns = thread_cpu_ns();
        told_ = since_before(processes, now_ns);
        // Without a second reading there is no result at all, so its cost is not limited.
        due_ns_ = told_ ? now_ns + (thread_cpu_ns() - used_ns) * kReadOneIn : 0;
    }
    return told_;
}

std::optional<Connections> TcpSampler::since_before(const std::vector<pid_t>& processes,
                                                    std::int64_t now_ns) {
    std::optional<TcpConnections> now = established();
    if (!now) {
        return std::nullopt;
    }
    find_own(*now, processes);
    std::erase_if(*now, [&](const auto& it) { return !known_.at(it.second.inode); });
    const TcpConnections before = std::exchange(before_, *std::move(now));
    const std::int64_t since_ns = std::exchange(before_ns_, now_ns);
    return now_ns > since_ns ? std::optional(between(before, before_, now_ns - since_ns)) : std::nullopt;
}

// Only if an inode is new: a process may have thousands of files.
void TcpSampler::find_own(const TcpConnections& all, const std::vector<pid_t>& processes) {
    if (std::ranges::all_of(all, [&](const auto& it) { return known_.contains(it.second.inode); })) {
        return;
    }
    std::set<std::uint64_t> own;
    for (const pid_t process : processes) {
        add_sockets(process, own);
    }
    known_.clear();
    for (const auto& [name, tcp] : all) {
        known_[tcp.inode] = own.contains(tcp.inode);
    }
}

}  // namespace hydra
