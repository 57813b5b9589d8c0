#include "common/kernel_files.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace hydra {
namespace {

bool is_readable(const std::string& pattern) {
    const bool kernel = pattern.starts_with("/proc/") || pattern.starts_with("/sys/");
    return kernel && (pattern + "/").find("/../") == std::string::npos;
}

std::set<std::string> matches(const Look& look) {
    std::set<std::string> paths;
    for (const std::string& pattern : look.patterns) {
        glob_t found{};
        if (is_readable(pattern) && glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
            paths.insert(found.gl_pathv, found.gl_pathv + found.gl_pathc);
        }
        globfree(&found);
    }
    return paths;
}

// None if there is no such file, because a process has ended for example.
std::optional<std::string> beginning(const std::string& path, std::size_t most_bytes) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT || errno == ENOTDIR || errno == ESRCH ? std::nullopt
                                                                     : std::optional<std::string>("");
    }
    std::string text(most_bytes, '\0');
    const ssize_t bytes = read(file, text.data(), text.size());
    const bool ended = bytes < 0 && errno == ESRCH;
    close(file);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return ended ? std::nullopt : std::optional(text);
}

}  // namespace

KernelTexts kernel_texts(const Look& look, const Ids& ids, std::int64_t now_ns) {
    KernelTexts answer{.ids = ids, .number = look.number, .time_ns = now_ns, .texts = {}};
    std::size_t bytes = 0;
    for (const std::string& path : matches(look)) {
        if (auto text = beginning(path, look.most_bytes)) {
            bytes += path.size() + text->size();
            if (bytes > kMaxTextBytes) {
                answer.complete = false;
                break;
            }
            answer.texts[path] = std::move(*text);
        }
    }
    return answer;
}

}  // namespace hydra
